// Drawing one token per row. Numerics: class cpu.sample.sorted.
//   m: the largest logit, NaN ignored. When it is not finite, or for a temperature not above 0, the
//      token is the argmax.
//   w: exp((x - m) * (1 / temperature)) in f32 by base/math.h; 0 where x is NaN.
//   The candidates stand in topk's order; top_k keeps the first top_k. Sums over them run in that
//   order in f64. `total` is that sum over the top_k, or without top_k the sum over the row in 16
//   f64 lanes (element i in lane i % 16, ascending; folded 8+8, 4+4, 2+2, 1+1).
//   The list ends with the candidate whose running sum reaches top_p * total, and before the first
//   whose w is below min_p or 0. The draw: u = philox_uniform(seed, position), times the sum of the
//   kept (the row's total when nothing was cut), and the first whose running sum exceeds it.
//   logprob = (x - m) - log(sum of exp(x - m)), the sum as `total`, the log in f32; NaN when m is
//   not finite.
// The result is a pure function of the row: the same alone, in a batch, and after a restart.
#pragma once

#include <span>

#include "kernels/kernel.h"
#include "kernels/sample/args.h"

namespace millrace::sample {

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

namespace reference {
size_t workspace_bytes(const Args& args, int n_lanes);
Status run(const Args& args, Exec& exec);
}  // namespace reference
namespace avx2 {
Status run(const Args& args, Exec& exec);
}
namespace avx512 {
Status run(const Args& args, Exec& exec);
}

}  // namespace millrace::sample
