// Timing whole models: prefill and decode, in tokens a second. The very steps that are timed are
// verified: every logit is finite, and the hash of each step's logits is the one that a run without
// a clock gave. Every round times a row twice (A and its twin, taking turns to go first), so that
// what a difference means is measured with it. The floor of a decode is what its bytes take at the
// bandwidth that a bare loop had between its own steps, on the same lanes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "lab/metric.h"

namespace millrace::lab {

// One sequence of a model. A test can put another behind it.
class ModelSteps {
 public:
  virtual ~ModelSteps() = default;
  virtual Status restart() = 0;  // an empty context
  // Computes tokens after those before. Returns once the last one's logits are where a sampler
  // would read them: a GPU is waited for.
  virtual Status compute(std::span<const int32_t> tokens) = 0;
  // Those, brought here from a GPU, until the next compute().
  virtual Result<std::span<const float>> logits() = 0;
};

class EngineSteps : public ModelSteps {
 public:
  explicit EngineSteps(Engine& engine) : engine_(engine) {}
  ~EngineSteps() override;
  Status restart() override;
  Status compute(std::span<const int32_t> tokens) override;
  Result<std::span<const float>> logits() override { return engine_.logits(0); }

 private:
  Engine& engine_;
  int seq_ = -1;
};

struct ModelBenchOptions {
  std::vector<int64_t> prompts, contexts;  // tokens of a prefill; before a decode
  int64_t n_decode = 128;
  int n_rounds = 6;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double share, std::string_view what)> progress = {};
};

// What a row computes: n_tokens at once after an empty context, or one by one after `context`.
struct ModelWork {
  bool is_decode = false;
  int64_t n_tokens = 0, context = 0;

  std::string name() const;  // "decode 128 at 0"
};
std::vector<ModelWork> work_of(const ModelBenchOptions& options);

// The hashes of the logits of each step of a work.
using StepHashes = std::vector<uint64_t>;

struct ModelRow {
  ModelWork work;
  double n_bytes = 0;  // read at least; 0 where arithmetic is the bound
  std::vector<double> seconds = {}, twin_seconds = {};  // by round
  std::vector<double> floor_seconds = {};  // by round; none where no bandwidth is known
  StepHashes hashes = {};                  // of the run without a clock, and of all others

  double tokens() const { return static_cast<double>(work.n_tokens); }
  bool has_floor() const { return !floor_seconds.empty(); }
  Metric rate() const;  // tokens_per_s, with its twin
  // What the rates of all rounds are held against: the median floor. 0: none.
  double floor_rate() const;
};

struct ModelCosts {
  std::function<double(const ModelWork&)> bytes_of;  // of the work, read at least
  std::function<double()> gbps_now;                  // 0: not known
};

class ModelBench {
 public:
  // `tokens`: at least as many as the longest work needs. All must outlive it.
  ModelBench(ModelSteps& steps, std::span<const int32_t> tokens, const ModelCosts& costs,
             const ModelBenchOptions& options)
      : steps_(steps), tokens_(tokens), costs_(costs), options_(options) {}

  Result<std::vector<ModelRow>> run();

 private:
  struct Timed {
    double seconds = 0, floor_s = 0;
  };
  Result<ModelRow> run_row(const ModelWork& work, double share_before, double share);
  Status run_round(ModelRow& row, int round);
  Result<Timed> timed(const ModelRow& row);
  double probe(const ModelWork& part) const;

  ModelSteps& steps_;
  const std::span<const int32_t> tokens_;
  const ModelCosts& costs_;
  const ModelBenchOptions& options_;
};

// Without a clock: the hashes of the work's first steps. An error names a logit that is not finite.
Result<StepHashes> hashes_of(ModelSteps& steps, std::span<const int32_t> tokens,
                             const ModelWork& work, int64_t most_steps);

// The work that another number of lanes and another batch size computes again, to the same bits:
// prompts and contexts of up to kWitnessTokens, and the first kWitnessSteps of a decode. Returns
// how many steps were compared. Fixed, so that no clock decides how much is verified.
inline constexpr int64_t kWitnessTokens = 512, kWitnessSteps = 8;
Result<int64_t> check_against(ModelSteps& witness, std::span<const int32_t> tokens,
                              const std::vector<ModelRow>& rows);

// The metrics of the rows; `subject` has the model's name, device and lanes.
std::vector<Metric> metrics_of(const std::vector<ModelRow>& rows, const Subject& subject);

}  // namespace millrace::lab
