// Least work of attention: the K and V that some row of the batch sees are read once per KV head,
// whatever the number of query heads and rows that share them; q read and out written once. Two
// multiply-adds per query head, seen token and dimension. How much is seen is in the positions and
// the window: a bound call's are read, and who has none yet counts it.
#pragma once

#include <algorithm>

#include "kernels/attention/args.h"
#include "kernels/kernel.h"
#include "tensor/format.h"

namespace millrace::attention {

struct Seen {
  double tokens = 0;  // distinct tokens of all sequences that some row attends to
  double pairs = 0;   // sum over rows of the tokens it attends to
};

inline Floor floor_of(const Args& a, const Seen& seen) {
  const auto dim = static_cast<double>(a.head_dim);
  const double rows = static_cast<double>(a.n_rows * a.n_heads) * dim;
  const double q_bytes = rows * format_of(a.q_type).block_bytes;
  const double kv = 2 * seen.tokens * static_cast<double>(a.n_kv_heads) * dim;
  const double macs = 2 * seen.pairs * static_cast<double>(a.n_heads) * dim;
  const bool tensor_cores = a.q_type == DType::bf16;
  return {.read_bytes = q_bytes + kv * format_of(a.kv_type).block_bytes,
          .write_bytes = q_bytes,
          .f32_macs = tensor_cores ? 0 : macs,
          .bf16_macs = tensor_cores ? macs : 0};
}

// Rows of one sequence that follow each other, in ascending order, share what they see.
inline Seen seen_by(const Args& a) {
  Seen seen;
  long long counted = 0;  // tokens of this sequence below this one
  for (long long r = 0; r < a.n_rows; ++r) {
    const long long end = a.positions[r] + 1LL;
    const long long first = a.window == 0 ? 0 : std::max(end - a.window, 0LL);
    if (r == 0 || a.sequences[r] != a.sequences[r - 1]) counted = 0;
    seen.tokens += static_cast<double>(std::max(end - std::max(first, counted), 0LL));
    seen.pairs += static_cast<double>(std::max(end - first, 0LL));
    counted = std::max(counted, end);
  }
  return seen;
}

inline Floor floor_of(const Args& a) {
  return floor_of(a, seen_by(a));
}

}  // namespace millrace::attention
