// Drawing one token per row. Numerics: classes cpu.sample.blocks1024 and, with the same arithmetic,
// cuda.sample.blocks1024.
//   x: the row's logits. When one is NaN or +Inf, or all are -Inf, the token is kNotFinite.
//   y: x after the row's edits, each in f32 and in this order. Of a token that was said:
//      y = x > 0 ? x / repeat : x * repeat, then y -= count * frequency + presence. Of a biased
//      one: y += bias, in list order. A NaN that comes of it counts as -Inf, and what is above the
//      largest finite float as that. A cleared bit of the mask makes y -Inf.
//   m: the largest y. When it is -Inf the token is kNoneAllowed. For a temperature not above 0 the
//      token is the first in topk's order.
//   w: exp((y - m) * (1 / temperature)) in f32 by base/math.h.
//   Sums over the vocabulary are made of blocks of 1,024 entries. In a block: 16 f64 lanes (entry i
//   in lane i % 16, ascending; a short last block ends early; folded 8+8, 4+4, 2+2, 1+1). Block
//   sums are added in f64 from the first block to the last.
//   The candidates stand in topk's order; top_k keeps the first top_k. Running sums over them are
//   f64 in blocks of 1,024 ranks: from 0 in a block, plus the running sum at the end of the block
//   before. `total` is the running sum at the last of the top_k, or without top_k the sum of w over
//   the vocabulary.
//   The list ends with the candidate whose running sum reaches top_p * total, and before the first
//   whose w is below min_p or 0. The draw: u = philox_uniform(seed, position, choice), times the
//   running sum of the last kept (the vocabulary's sum when nothing was cut), and the first whose
//   running sum exceeds it.
//   logprob = (x - largest x) - log(sum of exp(x - largest x)), the sum over the vocabulary, the
//   log in f32: under the logits as the model gave them. NaN where no token was drawn.
//   The most likely: the first of x in topk's order, with the same logprob.
// The result is a pure function of the row: the same alone, in a batch, on any number of lanes and
// after a restart.
#pragma once

#include <span>
#include <string_view>

#include "kernels/kernel.h"
#include "kernels/sample/args.h"

namespace millrace::sample {

extern const Op kOp;
// Its numerics classes, on lanes and on a GPU.
inline constexpr std::string_view kBlocks = "cpu.sample.blocks1024";
inline constexpr std::string_view kDeviceBlocks = "cuda.sample.blocks1024";

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
