// exp, silu, sigmoid, sincos and log on eight lanes, with the bits of base/math.h. Everything here
// has internal linkage and stands in an AVX2 target region; call it from one.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/isa.h"

MILLRACE_TARGET_AVX2
namespace millrace::math::avx2 {
namespace {

using Float = __m256;
using Int = uint32_t __attribute__((vector_size(32)));

inline Float splat(float value) {
  return _mm256_set1_ps(value);
}
inline Int splat_int(uint32_t value) {
  return (Int)_mm256_set1_epi32(static_cast<int>(value));
}
inline Float fma(Float a, Float b, Float c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Float lesser(Float limit, Float x) {
  return _mm256_min_ps(limit, x);  // x where either is NaN
}
inline Float greater(Float limit, Float x) {
  return _mm256_max_ps(limit, x);
}
inline Float less(Float a, Float b) {
  return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
inline Float less_equal(Float a, Float b) {
  return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}
inline Float is_zero(Int a) {
  return _mm256_castsi256_ps(_mm256_cmpeq_epi32((__m256i)a, _mm256_setzero_si256()));
}
inline Float select(Float mask, Float yes, Float no) {
  return _mm256_blendv_ps(no, yes, mask);
}
inline Int bits_of(Float a) {
  return (Int)a;
}
inline Float float_of(Int a) {
  return (Float)a;
}
inline Float magnitude(Float a) {
  return float_of(bits_of(a) & splat_int(0x7fffffff));
}
inline Float to_float(Int a) {
  return _mm256_cvtepi32_ps((__m256i)a);
}
template <int n>
inline Int shift_left(Int a) {
  return (Int)_mm256_slli_epi32((__m256i)a, n);
}
template <int n>
inline Int shift_right_signed(Int a) {
  return (Int)_mm256_srai_epi32((__m256i)a, n);
}
inline Float power_of_two(Int n) {
  return float_of(shift_left<23>(n + splat_int(127)));
}

#include "base/math_body.inc"

namespace one = math::avx2;
#include "base/math_several.inc"

}  // namespace
}  // namespace millrace::math::avx2
MILLRACE_TARGET_END
