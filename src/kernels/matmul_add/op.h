// A product whose result is added to the residual. Classes: those of matmul and add, whose bits it
// gives.
#pragma once

#include "kernels/fusion.h"
#include "kernels/matmul_add/args.h"

namespace millrace::matmul_add {

extern const Fusion kFusion;

std::vector<FusedCase> cases();

}  // namespace millrace::matmul_add
