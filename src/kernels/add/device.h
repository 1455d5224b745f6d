// The device variant's launcher, callable from plain C++; returns a cudaError_t as int.
#pragma once

#include "kernels/add/args.h"

namespace millrace::add {

int launch_sm80(const Args& args, void* stream, void* workspace);

}  // namespace millrace::add
