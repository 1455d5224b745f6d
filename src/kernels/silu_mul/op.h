// The gated activation of a feed-forward layer. Numerics: class cpu.silu_mul.f32, silu by the
// polynomial of base/math.h and one correctly rounded f32 product, each element for itself; a NaN
// is stored as 0x7fc00000. bf16 is widened exactly and rounded once at the end. Lanes split rows or
// columns.
#pragma once

#include <span>

#include "kernels/kernel.h"
#include "kernels/silu_mul/args.h"

namespace millrace::silu_mul {

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

namespace reference {
Status run(const Args& args, Exec& exec);
}
namespace plain {  // the witness of both classes
Status run(const Args& args, Exec& exec);
}
namespace avx2 {
Status run(const Args& args, Exec& exec);
}
namespace avx512 {
Status run(const Args& args, Exec& exec);
}

}  // namespace millrace::silu_mul
