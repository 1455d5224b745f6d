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

// Reads `bytes` into the caches, so that nothing else is left there, and nothing that waits to be
// written back.
int launch_evict(const void* data, size_t bytes, void* sink, void* stream);

// The cycles of one SM, always the same one, and the device's nanoseconds; into pinned memory.
struct alignas(16) Stamp {
  unsigned long long cycles, ns;
};
int launch_stamp(Stamp* out, void* stream);

// Holds the stream until the host opens the gate, in pinned memory; `expired` where it did not
// within most_ns.
struct Gate {
  int open, expired;
};
int launch_gate(Gate* gate, unsigned long long most_ns, void* stream);

}  // namespace millrace::lab
