// The device variant's launcher, callable from plain C++; returns a cudaError_t as int.
#pragma once

#include "kernels/rope/args.h"

namespace millrace::rope {

bool takes_sm80(const Args& args);
int launch_sm80(const Args& args, void* stream, void* workspace);

}  // namespace millrace::rope
