// The device variant's launcher, callable from plain C++. It returns a cudaError_t as int.
#pragma once

#include "kernels/attention_input/args.h"

namespace millrace::attention_input {

// Also asks whether the program's code for it is Hopper's.
bool takes_sm90(const Args& args);
int launch_sm90(const Args& args, void* stream, void* workspace);

}  // namespace millrace::attention_input
