#include "cli/bench_steps.h"

#include <algorithm>

#include "base/philox.h"

namespace millrace::cli {

std::vector<int32_t> random_tokens(int64_t n, int64_t n_vocab) {
  Rng rng(1);
  std::vector<int32_t> out(static_cast<size_t>(n));
  for (int32_t& token : out)
    token = static_cast<int32_t>(rng.below(static_cast<uint64_t>(n_vocab)));
  return out;
}

Result<std::unique_ptr<ModelSession>> load_for_steps(const BenchModelOptions& options,
                                                     int64_t n_decode) {
  if (options.device != "cpu")
    return error(Code::unsupported,
                 "--ops and --trace are not available on {} yet; leave out --device {}",
                 options.device, options.device);
  int64_t n_ctx = 1;
  for (const int64_t n : options.prompts) n_ctx = std::max(n_ctx, n + n_decode);
  for (const int64_t n : options.contexts) n_ctx = std::max(n_ctx, n + n_decode);
  return ModelSession::load({.model = options.model,
                             .threads = options.threads,
                             .n_ctx = n_ctx,
                             .n_batch = options.n_batch,
                             .device = options.device},
                            {.quiet = options.json, .any_context = true});
}

StepRunner::StepRunner(Engine& engine)
    : engine_(engine), tokens_(random_tokens(engine.n_ctx(), engine.config().n_vocab)) {}

StepRunner::~StepRunner() {
  if (seq_ >= 0) engine_.close(seq_);
}

Status StepRunner::begin(int64_t context) {
  if (seq_ >= 0) engine_.close(seq_);
  seq_ = -1;
  MILLRACE_ASSIGN(seq_, engine_.open());
  return compute(engine_, seq_, std::span(tokens_).first(static_cast<size_t>(context)));
}

std::span<const int32_t> StepRunner::tokens(int64_t n) const {
  return std::span(tokens_).subspan(static_cast<size_t>(context()), static_cast<size_t>(n));
}

Status StepRunner::step(std::span<const int32_t> tokens) {
  return engine_.step({.seq = seq_, .tokens = tokens});
}

}  // namespace millrace::cli
