// RMS norm over the rows of a matrix. Numerics: class cpu.rmsnorm.lanes16 sums the squares in 16
// f32 lanes, lane j taking elements j, j+16, ... as an FMA chain in ascending order (a tail joins
// as zeros), folds the lanes 8+8, 4+4, 2+2, 1+1, then scale = 1 / sqrt(sum / n + eps) by correctly
// rounded division and square root, and y = (x * scale) * weight.
#pragma once

#include <span>

#include "kernels/kernel.h"
#include "kernels/rmsnorm/args.h"

namespace millrace::rmsnorm {

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

namespace reference {
Status run(const Args& args, Exec& exec);
}
namespace plain {  // witnesses
Status run_lanes16(const Args& args, Exec& exec);
Status run_lanes256(const Args& args, Exec& exec);
}  // namespace plain
namespace avx2 {
Status run(const Args& args, Exec& exec);
}
namespace avx512 {
Status run(const Args& args, Exec& exec);
}

}  // namespace millrace::rmsnorm
