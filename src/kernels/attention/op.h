// Causal attention with grouped heads over a paged KV cache.
//
// Class cpu.attention.chunk256. The tokens of a sequence are cut into chunks of 256 at absolute
// positions. For one query head and one chunk, over those of the chunk's tokens that the row sees
// (t counts from the chunk's first, whatever the window):
//   score[t] = (FMA chain over d ascending from +0 of q[d] * k[t][d]) * scale
//   max = the greatest score
//   p[t] = exp(score[t] - max), exp by base/math; where max is -Inf, 0 is subtracted in its place
//   sum = 16 lanes, lane j adding p[j], p[j + 16], ... ascending from +0, folded 8+8, 4+4, 2+2, 1+1
//   (tokens not seen count as +0)
//   o[d] = FMA chain over t ascending from +0 of p[t] * v[t][d]
// The (max, sum, o) of the chunks of which the row sees something are folded left in ascending
// order:
//   M' = max(M, max); a = exp(M - M'); b = exp(max - M'); L = fma(L, a, sum * b);
//   O[d] = fma(O[d], a, o[d] * b), where M' is -Inf with 0 subtracted in its place: a chunk whose
//   scores are all -Inf keeps that as its max and weighs nothing
// and out[d] = O[d] * (1 / L); a NaN is written as 0x7fc00000. K and V are as stored, widened
// exactly. Nothing depends on which rows are computed together, so any grouping of rows, heads and
// lanes gives the same bits.
//
// Why the pages hold K by dimension and V by token: both products then read their matrix as
// [reduction index][independent index], so that on a CPU one routine with tokens (or dimensions) in
// the vector lanes serves both and no dot product is folded across lanes, and on a GPU both are the
// same transposed load of a tensor-core tile (ldmatrix.trans, or an MN-major wgmma operand). A page
// of one KV head is one contiguous run in both, 16-byte loads throughout. The price is that storing
// one token's K touches head_dim cache lines; it is paid once a token.
#pragma once

#include <span>

#include "kernels/attention/args.h"
#include "kernels/kernel.h"

namespace millrace::attention {

inline constexpr std::string_view kChunk256 = "cpu.attention.chunk256";
inline constexpr long long kChunkTokens = 256;
inline constexpr long long kMaxHeadDim = 256;

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

namespace reference {
Status run(const Args& args, Exec& exec);
// What roundings are relative to: those of the sums to sum p |v|; those of the weights p to
// sum p |v - out|, since a weight counts in the denominator too. Each as often as it is off by, one
// bound per element of out.
struct Errors {
  double of_sums, of_weights;
};
void magnitudes(const Args& args, const Errors& errors, std::span<double> out);
}  // namespace reference
namespace plain {  // the witness of cpu.attention.chunk256
bool takes(const Args& args);
Status run(const Args& args, Exec& exec);
}  // namespace plain
namespace avx2 {
Status run(const Args& args, Exec& exec);
}
namespace avx512 {
Status run(const Args& args, Exec& exec);
}

}  // namespace millrace::attention
