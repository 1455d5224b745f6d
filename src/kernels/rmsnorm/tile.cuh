// Device pieces of the norm, without a launch. Class cuda.rmsnorm.lanes256: 256 lanes, lane j
// taking elements j, j + 256, ... as an FMA chain in ascending order, folded in each 32 lanes by
// exchanges over 16, 8, 4, 2, 1, and the eight parts in ascending order; the rest as in op.h, with
// correctly rounded division and square root.
#pragma once

namespace millrace::rmsnorm {

inline constexpr int kLanes = 256;
inline constexpr int kParts = kLanes / 32;

__device__ __forceinline__ float fold_part(float sum) {
#pragma unroll
  for (int distance = 16; distance > 0; distance >>= 1) sum += __shfl_xor_sync(~0u, sum, distance);
  return sum;
}

// What every element of a row of n is multiplied by; sum: of its squares.
__device__ __forceinline__ float scale_of(float sum, long long n, float eps) {
  const float mean = __fdiv_rn(sum, static_cast<float>(n));
  return __fdiv_rn(1.0f, __fsqrt_rn(mean + eps));
}

}  // namespace millrace::rmsnorm
