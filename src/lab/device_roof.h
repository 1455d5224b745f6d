// The loops that measure a GPU's ceilings. They launch on the given stream and return a cudaError_t
// as int; whoever calls times them.
#pragma once

#include <cstddef>

namespace millrace::lab {

// Reads `bytes` of device memory once.
int launch_read(const void* data, size_t bytes, void* sink, void* stream);

// Keeps every tensor core busy with bf16 products from registers; returns through n_macs how many
// multiply-adds that was.
int launch_bf16_macs(void* sink, void* stream, double* n_macs);

}  // namespace millrace::lab
