// What a gated feed-forward part makes of the residual before its last product. Classes: those of
// rmsnorm, matmul and silu_mul, whose bits it gives.
#pragma once

#include "kernels/fusion.h"
#include "kernels/gated_input/args.h"

namespace millrace::gated_input {

extern const Fusion kFusion;

std::vector<FusedCase> cases();

}  // namespace millrace::gated_input
