// exp, silu, gelu, sigmoid, sincos and log on eight lanes, with the bits of base/math.h. Everything
// here has internal linkage and stands in an AVX2 target region; call it from one.
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

namespace one = math::avx2;
#include "base/math_vector.inc"

}  // namespace
}  // namespace millrace::math::avx2
MILLRACE_TARGET_END
