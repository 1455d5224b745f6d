// The house's own exp, silu, gelu, sigmoid, sincos and log: f32 in, f32 out. The scalar form;
// math_avx2.h and math_avx512.h give the same bits lane by lane, for every input. Errors in units
// in the last place, as math_test.cpp measures them: exp and log below 1, sin and cos below 1.6
// (|x| <= 2^22; NaN beyond), sigmoid and silu below 2.5. exp overflows to Inf and underflows
// gradually. sigmoid and silu are 1 / (1 + exp(-x)) and x / (1 + exp(-x)) as written: where exp(-x)
// is Inf (x < -88.73) they are 0 and -0, and silu(-Inf) is NaN. gelu is the tanh form, x / (1 +
// exp(-t)) with t = sqrt(8/pi) * (x + 0.044715 x^3): off by at most 4 + 4 |t| / (1 + exp(t)) times
// 2^-24 of itself, as derived in math_test.cpp; -0 below -10.06, and gelu(-Inf) is NaN. NaN gives
// NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace millrace::math {

using Float = float;
using Int = uint32_t;  // unsigned: wraps as the vector instructions do

inline float splat(float value) {
  return value;
}
inline Int splat_int(uint32_t value) {
  return value;
}
inline float fma(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline float lesser(float limit, float x) {
  return limit < x ? limit : x;
}
inline float greater(float limit, float x) {
  return limit > x ? limit : x;
}
inline bool less(float a, float b) {
  return a < b;
}
inline bool less_equal(float a, float b) {
  return a <= b;
}
inline bool is_zero(Int a) {
  return a == 0;
}
inline float select(bool mask, float yes, float no) {
  return mask ? yes : no;
}
inline Int bits_of(float a) {
  return std::bit_cast<Int>(a);
}
inline float float_of(Int a) {
  return std::bit_cast<float>(a);
}
inline float magnitude(float a) {
  return float_of(bits_of(a) & 0x7fffffff);
}
inline float to_float(Int a) {
  return static_cast<float>(static_cast<int32_t>(a));
}
template <int n>
inline Int shift_left(Int a) {
  return a << n;
}
template <int n>
inline Int shift_right_signed(Int a) {
  return static_cast<Int>(static_cast<int32_t>(a) >> n);
}
inline float power_of_two(Int n) {
  return float_of((n + 127) << 23);
}

#include "base/math_body.inc"

}  // namespace millrace::math
