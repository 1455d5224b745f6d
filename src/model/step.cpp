#include "model/step.h"

#include "tensor/format.h"

namespace millrace {
namespace {

// A cache below this is not worth huge pages, of which every layer would touch its own at the first
// token.
constexpr size_t kStreamedBytes = size_t{128} << 20;

constexpr int64_t round_up(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

int64_t kv_bytes_per_token(const Config& config, DType kv_type) {
  const int64_t values = 2 * config.n_layers * config.n_kv_heads * config.head_dim;
  return static_cast<int64_t>(bytes_of(kv_type, values));
}

Result<Step> Step::make(const Config& config, const StepLimits& limits) {
  Step step;
  step.limits_ = limits;
  const int64_t row_bytes = round_up(limits.max_rows * 4);
  const int64_t table_bytes = round_up(limits.max_seqs * limits.max_pages * 4);
  const int64_t logit_bytes = round_up(limits.max_outputs * config.n_vocab * 4);
  MILLRACE_ASSIGN(step.rows_,
                  HostBuffer::make(static_cast<size_t>(5 * row_bytes + table_bytes + logit_bytes),
                                   Pages::small));
  for (int64_t i = 0; i < 6; ++i)
    step.ints_.push_back(reinterpret_cast<int32_t*>(step.rows_.data() + i * row_bytes));
  step.logits_ = reinterpret_cast<float*>(step.rows_.data() + 5 * row_bytes + table_bytes);
  const int64_t page_values = config.n_kv_heads * config.head_dim * limits.page_tokens;
  step.pool_bytes_ =
      round_up(static_cast<int64_t>(bytes_of(limits.kv_type, limits.n_pages * page_values)));
  const auto kv_bytes = static_cast<size_t>(2 * config.n_layers * step.pool_bytes_);
  const Pages pages = kv_bytes < kStreamedBytes ? Pages::small : Pages::huge;
  MILLRACE_ASSIGN(step.pages_, HostBuffer::make(kv_bytes, pages));
  return step;
}

}  // namespace millrace
