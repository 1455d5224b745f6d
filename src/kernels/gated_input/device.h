// The device variant's launcher, callable from plain C++. It returns a cudaError_t as int.
#pragma once

#include "kernels/gated_input/args.h"

namespace millrace::gated_input {

bool takes_sm80(const Args& args);
int launch_sm80(const Args& args, void* stream, void* workspace);

}  // namespace millrace::gated_input
