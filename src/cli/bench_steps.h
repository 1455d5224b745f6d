// Steps of a model on random tokens, one after the other: what --ops and --trace look into.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cli/bench_model.h"
#include "cli/model_session.h"

namespace millrace::cli {

std::vector<int32_t> random_tokens(int64_t n, int64_t n_vocab);

// A model with room for the options' prompts, and for n_decode tokens after their contexts; on
// lanes alone.
Result<std::unique_ptr<ModelSession>> load_for_steps(const BenchModelOptions& options,
                                                     int64_t n_decode);

class StepRunner {
 public:
  explicit StepRunner(Engine& engine);
  ~StepRunner();
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  Status begin(int64_t context);  // from an empty sequence
  // The next n; step() computes them, with the logits of the last.
  std::span<const int32_t> tokens(int64_t n) const;
  Status step(std::span<const int32_t> tokens);
  int64_t context() const { return std::ssize(engine_.tokens(seq_)); }

 private:
  Engine& engine_;
  int seq_ = -1;
  const std::vector<int32_t> tokens_;
};

}  // namespace millrace::cli
