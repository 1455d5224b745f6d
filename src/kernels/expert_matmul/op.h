// The products of a mixture of experts. Numerics: those of matmul, in whose classes every choice is
// one row (cpu.matmul.i8b32, cpu.matmul.f32); so a row's result does not depend on which experts
// other rows chose. The experts lie stacked as one matrix of n_experts * n outputs, packed like any
// other; n is a multiple of a tile's 16 outputs, so an expert is a run of whole tiles.
#pragma once

#include <span>

#include "kernels/expert_matmul/args.h"
#include "kernels/kernel.h"

namespace millrace::expert_matmul {

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

}  // namespace millrace::expert_matmul
