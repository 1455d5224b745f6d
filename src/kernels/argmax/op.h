// The index of each row's largest element. Numerics: class exact; it is topk's first index (order.h
// there): ties go to the lower index, +0 is above -0, NaN is ignored, and a row of NaN alone gives
// 0.
#pragma once

#include <span>

#include "kernels/argmax/args.h"
#include "kernels/kernel.h"

namespace millrace::argmax {

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

namespace reference {
Status run(const Args& args, Exec& exec);
}
namespace avx2 {
Status run(const Args& args, Exec& exec);
}

}  // namespace millrace::argmax
