// The order of topk/order.h for device code. An element under selection is one integer: its key,
// made unsigned, above the complement of its index. The greater comes first, and no two of a row
// are equal, so a maximum or a sort gives one answer whatever the order of comparisons.
#pragma once

namespace millrace::topk {

using DeviceCandidate = unsigned long long;

// topk::key_of, made unsigned: NaN is below -Inf, -0 just below +0.
__device__ __forceinline__ unsigned device_key(float x) {
  if (x != x) return 1;
  const auto bits = static_cast<int>(__float_as_uint(x));
  return static_cast<unsigned>(bits ^ ((bits >> 31) & 0x7fffffff)) ^ 0x80000000u;
}

__device__ __forceinline__ DeviceCandidate device_candidate(float x, long long i) {
  return static_cast<DeviceCandidate>(device_key(x)) << 32 |
         (0xffffffffu - static_cast<unsigned>(i));
}

__device__ __forceinline__ int index_of(DeviceCandidate candidate) {
  return static_cast<int>(0xffffffffu - static_cast<unsigned>(candidate));
}

__device__ __forceinline__ float value_of(DeviceCandidate candidate) {
  const auto key = static_cast<int>(static_cast<unsigned>(candidate >> 32) ^ 0x80000000u);
  return __uint_as_float(static_cast<unsigned>(key ^ ((key >> 31) & 0x7fffffff)));
}

// The greatest of a block's, in every thread.
template <int kThreads>
__device__ DeviceCandidate greatest_of_block(DeviceCandidate best) {
  __shared__ DeviceCandidate warps[kThreads / 32];
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) best = max(best, __shfl_xor_sync(~0u, best, d));
  __syncthreads();  // whoever reads an earlier one's
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = best;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) best = max(best, warps[w]);
  return best;
}

}  // namespace millrace::topk
