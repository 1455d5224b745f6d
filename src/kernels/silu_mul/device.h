// The device variant's launcher, callable from plain C++; returns a cudaError_t as int.
#pragma once

#include "kernels/silu_mul/args.h"

namespace millrace::silu_mul {

int launch_sm80(const Args& args, void* stream, void* workspace);

}  // namespace millrace::silu_mul
