// The device variant, callable from plain C++; the launcher returns a cudaError_t as int.
#pragma once

#include <cstddef>

#include "kernels/sample/args.h"

namespace millrace::sample {

bool takes_sm80(const Args& args);
size_t sm80_workspace_bytes(const Args& args, int n_lanes);
int launch_sm80(const Args& args, void* stream, void* workspace);

}  // namespace millrace::sample
