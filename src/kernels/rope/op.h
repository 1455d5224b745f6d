// Rotary embedding. The angle is exact: a frequency is a 64-bit binary fraction of a turn, so
// position * frequency modulo one turn is one wrapping integer product, and no position loses
// precision (an f32 product at position 131072 would be off by 4e-3 rad).
//
// Class cpu.rope.turns: phase = the upper 32 bits of positions[r] * turns[i] mod 2^64, as int32;
// angle = float(phase) * pi / 2^31, in [-pi, pi]; sin and cos of
// it by base/math; each times magnitude, rounded; then y0 = fma(x0, cos, -(x1 * sin)) and
// y1 = fma(x1, cos, x0 * sin). Off the exact angle by at most 4e-7 rad at every position.
#pragma once

#include <span>

#include "kernels/kernel.h"
#include "kernels/rope/args.h"

namespace millrace::rope {

inline constexpr std::string_view kTurns = "cpu.rope.turns";
inline constexpr float kRadiansPerPhase = 0x1.921fb6p-30f;  // pi / 2^31
inline constexpr long long kMaxRotDim = 512;

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

namespace reference {
Status run(const Args& args, Exec& exec);
// (|x0| + |x1|) * magnitude for both elements of a pair, |x| for those that are copied, one per
// element of y: what rounding errors are relative to.
void magnitudes(const Args& args, std::span<double> out);
}  // namespace reference
namespace plain {  // the witness of both classes
Status run(const Args& args, Exec& exec);
}
namespace avx2 {
Status run(const Args& args, Exec& exec);
}

}  // namespace millrace::rope
