// Elementwise sum: the residual connection, and the bias of a product. Numerics: class cpu.add.f32,
// one correctly rounded f32 addition per element, a NaN stored as 0x7fc00000; no order to choose,
// so every variant gives the reference's bits. A bf16 operand is widened exactly, a bf16 y is the
// f32 sum rounded once. Lanes split rows or columns.
#pragma once

#include <span>

#include "kernels/add/args.h"
#include "kernels/kernel.h"

namespace millrace::add {

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

namespace reference {
Status run(const Args& args, Exec& exec);
}
namespace avx2 {
Status run(const Args& args, Exec& exec);
}
namespace avx512 {
Status run(const Args& args, Exec& exec);
}

}  // namespace millrace::add
