#include <cuda_runtime.h>

#include "lab/spin_args.h"

namespace millrace::lab::spin {
namespace {

__device__ unsigned long long device_ns() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

// What the kernel must compute is done, to the last store, before the clock is looked at: it is
// part of the empty kernel's time, and hidden under the spin it would be taken off once too often
// (0.4 us of 10 on an H200). The vote waits for what was read back, and the clock for the vote.
__global__ void spin_kernel(Args a, unsigned long long ns) {
  for (long long i = threadIdx.x; i < a.n; i += blockDim.x) a.y[i] = a.x[i];
  __threadfence();
  bool same = true;
  for (long long i = threadIdx.x; i < a.n; i += blockDim.x)
    same = same && __float_as_uint(__ldcg(a.y + i)) == __float_as_uint(a.x[i]);
  if (!__all_sync(0xffffffffu, same)) return;
  const unsigned long long start = device_ns();
  while (device_ns() - start < ns) {
  }
}

}  // namespace

int launch(const Args& args, void* stream, int thousandths) {
  spin_kernel<<<1, 32, 0, static_cast<cudaStream_t>(stream)>>>(
      args, 10ull * static_cast<unsigned long long>(thousandths));
  return cudaGetLastError();
}

}  // namespace millrace::lab::spin
