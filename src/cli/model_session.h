// What every command that runs a model shares: its options, and the model loaded by them with a
// progress bar on stderr.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "cli/app.h"
#include "engine/language_model.h"
#include "kernels/pick.h"
#include "machine/machine.h"
#include "machine/team.h"

namespace millrace::cli {

inline constexpr char kBatchHelp[] =
    "Batch size: prompt tokens computed at once (default: 64; 256 for a mixture of experts or a "
    "server, 512 on a GPU)";

struct ModelOptions {
  std::string model;         // empty: the default one
  int threads = 0;           // 0: as many as there are CPUs
  int64_t n_ctx = 0;         // 0: default_context's
  int64_t n_batch = 0;       // 0: batch_of's
  std::string kv_type = {};  // empty: what the device keeps by default
  std::string device = "cpu";
};

// Without `positional` the model goes by -m alone: see take_model().
void add_model_options(Command& command, ModelOptions& options, bool positional = true);

class ModelSession {
 public:
  // What a command needs beyond its options: sequences at once, rows with logits.
  struct Needs {
    int64_t max_seqs = 1, max_outputs = 16;
    bool quiet = false;        // no progress bar
    bool any_context = false;  // what the model makes of a context beyond its own does not matter
    // All KV pages, apart from the longest context; 0: the context decides, -1: what memory is
    // left once the weights are in.
    int64_t kv_bytes = 0;
    KvPolicy kv_policy = KvPolicy::value;
    // Another model's session that outlives this one: its machine and its lanes are used.
    ModelSession* beside = nullptr;
  };
  static Result<std::unique_ptr<ModelSession>> load(const ModelOptions& options,
                                                    const Needs& needs);

  const Machine& machine() const { return machine_; }
  Team& team() { return *team_; }
  const PickFrom& pick_from() const { return *from_; }
  Engine& engine() { return *engine_; }
  // With its tokenizer, template and sampler; what had to be assumed of them, stderr says.
  Result<LanguageModel> language_model();
  const std::string& name() const { return name_; }  // of the model, for people
  double load_seconds() const { return load_seconds_; }

 private:
  ModelSession() = default;

  Machine machine_;
  Profile profile_;
  Force force_;
  std::unique_ptr<Team> own_team_;
  Team* team_ = nullptr;
  std::unique_ptr<Device> device_;
  std::optional<PickFrom> from_;
  std::unique_ptr<Engine> engine_;
  std::string name_;
  double load_seconds_ = 0;
};

}  // namespace millrace::cli
