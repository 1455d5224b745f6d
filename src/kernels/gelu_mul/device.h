// The device variant's launcher, callable from plain C++; returns a cudaError_t as int.
#pragma once

#include "kernels/gelu_mul/args.h"

namespace millrace::gelu_mul {

int launch_sm80(const Args& args, void* stream, void* workspace);

}  // namespace millrace::gelu_mul
