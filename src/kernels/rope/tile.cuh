// Device pieces of the rotation, without a launch, in the arithmetic of op.h: the angle is one
// wrapping integer product, so no position loses precision.
#pragma once

#include "base/math_cuda.cuh"

namespace millrace::rope {

// (cos, sin) of a pair that turns so much a position, both times the magnitude.
__device__ __forceinline__ float2 turn_of(int position, unsigned long long turns, float magnitude) {
  const auto all = static_cast<unsigned long long>(static_cast<long long>(position)) * turns;
  const auto phase = static_cast<int>(static_cast<unsigned>(all >> 32));
  const math::cuda::SinCos t = math::cuda::sincos(static_cast<float>(phase) * 0x1.921fb6p-30f);
  return make_float2(t.cos * magnitude, t.sin * magnitude);
}

__device__ __forceinline__ float turned_first(float x0, float x1, float2 turn) {
  return __fmaf_rn(x0, turn.x, -(x1 * turn.y));
}
__device__ __forceinline__ float turned_second(float x0, float x1, float2 turn) {
  return __fmaf_rn(x1, turn.x, x0 * turn.y);
}

}  // namespace millrace::rope
