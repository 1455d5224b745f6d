// base/math.h for device code: the same text over a CUDA thread's scalars, so the same bits.
#pragma once

namespace millrace::math {
namespace cuda {

using Float = float;
using Int = unsigned;

__device__ __forceinline__ float splat(float value) {
  return value;
}
__device__ __forceinline__ Int splat_int(unsigned value) {
  return value;
}
__device__ __forceinline__ float fma(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
__device__ __forceinline__ float lesser(float limit, float x) {
  return limit < x ? limit : x;
}
__device__ __forceinline__ float greater(float limit, float x) {
  return limit > x ? limit : x;
}
__device__ __forceinline__ bool less(float a, float b) {
  return a < b;
}
__device__ __forceinline__ bool less_equal(float a, float b) {
  return a <= b;
}
__device__ __forceinline__ bool is_zero(Int a) {
  return a == 0;
}
__device__ __forceinline__ float select(bool mask, float yes, float no) {
  return mask ? yes : no;
}
__device__ __forceinline__ Int bits_of(float a) {
  return __float_as_uint(a);
}
__device__ __forceinline__ float float_of(Int a) {
  return __uint_as_float(a);
}
__device__ __forceinline__ float magnitude(float a) {
  return float_of(bits_of(a) & 0x7fffffff);
}
__device__ __forceinline__ float to_float(Int a) {
  return static_cast<float>(static_cast<int>(a));
}
template <int n>
__device__ __forceinline__ Int shift_left(Int a) {
  return a << n;
}
template <int n>
__device__ __forceinline__ Int shift_right_signed(Int a) {
  return static_cast<Int>(static_cast<int>(a) >> n);
}
__device__ __forceinline__ float power_of_two(Int n) {
  return float_of((n + 127) << 23);
}

#define MILLRACE_MATH_INLINE __device__ __forceinline__
#include "base/math_body.inc"

}  // namespace cuda
}  // namespace millrace::math
