#include "cli/context.h"

#include <algorithm>

namespace millrace::cli {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
// For activations, logits and the programs beside this one: an eighth of what is free, and not less
// than this.
constexpr size_t kLeastReserve = 256 * kMiB;
// Offered whatever the memory: a short conversation takes as much, and pages that no token reached
// take none.
constexpr int64_t kLeastContext = 2048;
constexpr int64_t kStep = 256;

}  // namespace

int64_t default_context(int64_t n_trained, const ContextMemory& memory) {
  const size_t reserve = std::max(kLeastReserve, memory.available_bytes / 8);
  const size_t taken = memory.weight_bytes + reserve;
  const size_t left = memory.available_bytes > taken ? memory.available_bytes - taken : 0;
  const size_t n_fit = left / std::max<size_t>(memory.kv_bytes_per_token, 1);
  if (n_fit >= static_cast<size_t>(n_trained)) return n_trained;
  const int64_t whole_steps = static_cast<int64_t>(n_fit) / kStep * kStep;
  return std::min(n_trained, std::max(whole_steps, kLeastContext));
}

}  // namespace millrace::cli
