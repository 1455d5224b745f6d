// Activations to int8 rows (row.h). Numerics: class cpu.quantize.q8_row defines an integer format,
// so there is one right answer, and the reference gives it too. For each block of 32, all in f32:
//   amax = max |x|;  scale = amax / 127;  q = (x * (127 / amax)) to the nearest integer, ties to
//   even;  sum = the sum of q.
// |q| <= 127 follows: x * (127 / amax) exceeds 127 by two roundings at most. Where that has no
// meaning:
//   a NaN or an Inf in the block:  scale = NaN (0x7fc00000), q = 0, sum = 0, so that every product
//     with the row is NaN and nothing is hidden;
//   amax < 2^-119 (scale may be denormal; includes 0):  scale = 0, q = 0, sum = 0.
// Lanes split rows, or the blocks of every row.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"
#include "kernels/quantize/args.h"

namespace millrace::quantize {

inline constexpr uint32_t kLeastBits = 0x04000000;     // 2^-119 as f32 bits
inline constexpr uint32_t kInfiniteBits = 0x7f800000;  // and NaN above
inline constexpr uint32_t kNanBits = 0x7fc00000;

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

namespace reference {
Status run(const Args& args, Exec& exec);
}
namespace avx2 {
Status run(const Args& args, Exec& exec);
}

}  // namespace millrace::quantize
