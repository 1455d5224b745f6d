// Row softmax with a scale. Numerics: class cpu.softmax.lanes16. m is the largest x (NaN ignored),
// e = exp((x - m) * scale) by base/math.h, the sum of e in 16 f32 lanes (lane j takes elements j,
// j+16, ... in ascending order, a tail joins as zeros) folded 8+8, 4+4, 2+2, 1+1, and
// y = e * (1 / sum). A NaN or +Inf in a row, or nothing above -Inf, makes the whole row the quiet
// NaN 0x7fc00000: which of two NaNs a sum passes on is the compiler's choice of operand order.
#pragma once

#include <span>

#include "kernels/kernel.h"
#include "kernels/softmax/args.h"

namespace millrace::softmax {

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

namespace reference {
Status run(const Args& args, Exec& exec);
}
namespace plain {  // the witness
Status run(const Args& args, Exec& exec);
}
namespace avx2 {
Status run(const Args& args, Exec& exec);
}
namespace avx512 {
Status run(const Args& args, Exec& exec);
}

}  // namespace millrace::softmax
