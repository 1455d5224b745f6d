// Sequences over one loaded model. A step takes an explicit batch: of each sequence in it some new
// tokens, computed together; a step that fails changes nothing. What a sequence's tokens give never
// depends on the others, on how a prompt was cut into steps, or on the number of lanes. It belongs
// to one thread, the one that made its team.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/kv_pages.h"
#include "engine/kv_tier.h"
#include "engine/prefix_tree.h"
#include "engine/retention.h"
#include "engine/step_inputs.h"
#include "exec/device.h"
#include "kernels/attention/work.h"
#include "kernels/pick.h"
#include "machine/team.h"
#include "model/network.h"

namespace millrace {

struct EngineOptions {
  int64_t n_ctx = 4096;      // tokens of one sequence at most
  int64_t max_seqs = 1;      // sequences at once
  int64_t max_rows = 512;    // tokens of one step at most
  int64_t max_outputs = 16;  // of them with logits
  int64_t kv_bytes = 0;      // all KV pages; 0: enough for max_seqs sequences of n_ctx tokens
  DType kv_type = DType::f16;
  KvPolicy kv_policy = KvPolicy::value;  // what is forgotten first
  // Asked before the pages of a step are reserved and before it runs, with "reserve" and "run":
  // how tests make a step fail.
  std::function<Status(std::string_view phase)> fault = {};
};

// One sequence's part of a step.
struct Work {
  enum class Logits : unsigned char { none, last, all };
  int seq = 0;
  std::span<const int32_t> tokens = {};  // computed after those that the sequence has
  Logits wants = Logits::last;
};

class Engine {
 public:
  // All must outlive it; the lanes of `team` pack the weights.
  static Result<std::unique_ptr<Engine>> load(ModelFile file, Device& device, Team& team,
                                              const PickFrom& from, const EngineOptions& options,
                                              const LoadProgress& progress = {});

  const Config& config() const { return network_->config(); }
  const ModelFile& file() const { return network_->file(); }
  Network& network() { return *network_; }
  const Network& network() const { return *network_; }
  const EngineOptions& options() const { return options_; }
  int64_t n_ctx() const { return options_.n_ctx; }
  // Tokens are the same wherever this is: all numerics classes of the step and of sampling with
  // their revisions, the KV type, and on a GPU its architecture.
  std::string fingerprint() const;
  // What a context's KV depends on besides its tokens.
  std::string root() const;

  Result<int> open();  // a sequence of no tokens
  // A sequence that begins with as many of these tokens as the prefix tree has, but not the last of
  // them: its logits are wanted. Its own pages join the tree under `salt` as they fill.
  // `persists`: they may be written to disk. `use`: for whom.
  Result<int> open(std::span<const int32_t> prompt, std::string_view salt, bool persists = true,
                   const Use& use = {});
  // A context may go on from here: all of such a sequence is put into the tree.
  void remember(int seq);
  // A sequence that begins with the first n tokens of another: whole pages are shared, the rest of
  // a page is copied. Unavailable where a layer's window has given back pages it would need.
  Result<int> fork(int seq, int64_t n);
  void close(int seq);

  std::span<const int32_t> tokens(int seq) const { return at(seq).tokens; }
  // Forgets what follows the first n tokens. Returns how many stay: fewer where a layer's window
  // has given back the pages it would need, or where others share the page that would be written.
  int64_t keep(int seq, int64_t n);

  // All of it, or nothing: no pages, a full context, a token outside the vocabulary or a failing
  // device leave every sequence as it was. `then`, prepared for the device, follows in the same
  // dispatch: what draws from the logits.
  Status step(std::span<const Work> batch, Program* then = nullptr);
  Status step(const Work& work) { return step({&work, 1}); }

  // Of the last step: the logits of work i, those of its row r where it wanted all. Valid until
  // the next step.
  Result<std::span<const float>> logits(size_t work, int64_t row = -1);
  // The same where the device has them, in the order of the works that wanted any: [n][n_vocab]. It
  // never changes.
  const float* logits_on_device() const { return network_->program().logits(); }

  int64_t n_free_pages(size_t group = 0) const { return pools_[group].n_free(); }
  int64_t n_pages(size_t group = 0) const { return pools_[group].n_pages(); }
  size_t n_groups() const { return pools_.size(); }
  // Pages of a group that n tokens of one sequence take.
  int64_t n_pages_for(size_t group, int64_t n_tokens) const;
  const PrefixTree& tree() const { return *tree_; }
  Retention& retention() { return retention_; }
  const Retention& retention() const { return retention_; }
  Device& device() { return device_; }
  size_t kv_bytes() const;

  // Contexts are kept in this folder too, and found there again: before the first sequence. The
  // options' root and slots are set here.
  Status keep_on_disk(disk::Folder folder, disk::TierOptions options,
                      const KvTierOptions& how = {});
  KvTier* tier() { return tier_.get(); }
  const KvTier* tier() const { return tier_.get(); }

 private:
  struct Sequence {
    bool is_open = false;
    std::vector<int32_t> tokens;              // computed
    std::vector<std::vector<int32_t>> pages;  // by group; -1: given back
    bool is_remembered = false, persists = true;
    std::string salt;
    Use use;
  };
  struct Outputs {
    int64_t first = 0, n = 0;
  };

  Engine(Device& device, const EngineOptions& options)
      : device_(device), options_(options), retention_(options.kv_policy) {}
  Status make_pools(const Config& config);
  std::string step_classes() const;
  StepBindings bindings(const Config& config) const;
  Sequence& at(int seq);
  const Sequence& at(int seq) const;
  Status check(std::span<const Work> batch) const;
  Status check_room(std::span<const Work> batch) const;
  Status reserve(std::span<const Work> batch);
  Status reserve(const Work& work);
  void fill_rows(std::span<const Work> batch);
  void list_work();
  void commit(std::span<const Work> batch);
  void roll_back();
  bool has_seen_pages(std::span<const std::vector<int32_t>> pages, int64_t n) const;
  int64_t open_last_page(const Sequence& s, int64_t n);
  Result<int32_t> share_page(size_t group, int32_t id, bool whole);
  Status share_pages(Sequence& to, std::span<const std::vector<int32_t>> pages, int64_t n);
  void release_from(Sequence& s, size_t group, size_t page);
  void release_before_window(Sequence& s);

  Device& device_;
  const EngineOptions options_;
  std::vector<KvPages> pools_;
  Retention retention_;
  std::unique_ptr<PrefixTree> tree_;
  std::unique_ptr<KvTier> tier_;  // null: there is none
  attention::Spread work_;  // how a GPU's attention shares out a step; the lists are in inputs_
  StepInputs inputs_;
  std::unique_ptr<Network> network_;
  std::vector<Sequence> seqs_;
  struct Taken {
    int seq;
    size_t group;
  };
  std::vector<Taken> taken_;  // pages of this step, in order
  std::vector<Outputs> outputs_;
  int64_t n_rows_ = 0, n_outputs_ = 0;
  PinnedBuffer read_back_;  // logits of a GPU's step, once somebody asks for them
  bool is_read_back_ = false;
};

// Computes `tokens` after those that the sequence has, in steps of at most options().max_rows;
// `stop` ends it early. The last step's logits are wanted.
Status compute(Engine& engine, int seq, std::span<const int32_t> tokens,
               const std::function<bool()>& stop = {});

// NaN and infinite logits are no answer: the error names the token's position.
Status check_finite(std::span<const float> logits, int64_t position);

// The same with the logits of every token: on_row(i, logits) for token i. All are finite.
Status compute_all(Engine& engine, int seq, std::span<const int32_t> tokens,
                   const std::function<void(size_t row, std::span<const float> logits)>& on_row);

// The sequence keeps what it shares with these tokens, but not the last of them: its logits are
// wanted. Returns how many it keeps.
int64_t keep_shared(Engine& engine, int seq, std::span<const int32_t> tokens);

}  // namespace millrace
