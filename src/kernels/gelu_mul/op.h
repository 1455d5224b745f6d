// The gated activation of a feed-forward layer with GELU in its tanh form (GeGLU: Gemma). Numerics:
// class cpu.gelu_mul.f32, gelu as base/math.h writes it, x / (1 + exp(-t)) with t = x * fma(x * x,
// b, a), and one correctly rounded f32 product, each element for itself; a NaN is stored as
// 0x7fc00000. Lanes split rows or columns. Class cuda.gelu_mul.f32: the same, rounded once more
// where y is bf16.
#pragma once

#include <span>

#include "kernels/gelu_mul/args.h"
#include "kernels/kernel.h"

namespace millrace::gelu_mul {

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

namespace reference {
Status run(const Args& args, Exec& exec);
// For each output what a rounding counts for: |y| as often as gelu's error bound has roundings.
void magnitudes(const Args& args, std::span<double> out);
}  // namespace reference
namespace plain {  // the witness of both classes
Status run(const Args& args, Exec& exec);
}
namespace avx2 {
Status run(const Args& args, Exec& exec);
}
namespace avx512 {
Status run(const Args& args, Exec& exec);
}

}  // namespace millrace::gelu_mul
