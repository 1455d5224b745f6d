// The device variant's launcher, callable from plain C++; returns a cudaError_t as int.
#pragma once

#include "kernels/rmsnorm/args.h"

namespace millrace::rmsnorm {

int launch_sm80(const Args& args, void* stream, void* workspace);

}  // namespace millrace::rmsnorm
