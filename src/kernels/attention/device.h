// The device variants, callable from plain C++; what returns an int returns a cudaError_t.
#pragma once

#include <cstddef>

#include "kernels/attention/args.h"

namespace millrace::attention {

bool takes_sm80(const Args& args);
size_t sm80_workspace_bytes(const Args& args, int n_lanes);
int launch_sm80(const Args& args, void* stream, void* workspace);

bool takes_sm80_list(const Args& args);
size_t sm80_list_workspace_bytes(const Args& args, int n_lanes);
int launch_sm80_list(const Args& args, void* stream, void* workspace);
// What this device wants of a list for such heads: all of `work` but the list itself; no shares
// where it has no kernel for them, or too little shared memory.
int sm80_list_work(long long head_dim, Spread* work);

}  // namespace millrace::attention
