// exp, silu, gelu, sigmoid, sincos and log on sixteen lanes, with the bits of base/math.h.
// Everything here has internal linkage and stands in an AVX-512 target region; call it from one.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/isa.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
MILLRACE_TARGET_AVX512
namespace millrace::math::avx512 {
namespace {

using Float = __m512;
using Int = uint32_t __attribute__((vector_size(64)));

inline Float splat(float value) {
  return _mm512_set1_ps(value);
}
inline Float fma(Float a, Float b, Float c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline Float lesser(Float limit, Float x) {
  return _mm512_min_ps(limit, x);  // x where either is NaN
}
inline Float greater(Float limit, Float x) {
  return _mm512_max_ps(limit, x);
}
inline __mmask16 less(Float a, Float b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
inline __mmask16 less_equal(Float a, Float b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
inline __mmask16 is_zero(Int a) {
  return _mm512_testn_epi32_mask((__m512i)a, (__m512i)a);
}
inline Float select(__mmask16 mask, Float yes, Float no) {
  return _mm512_mask_blend_ps(mask, no, yes);
}

namespace one = math::avx512;
#include "base/math_vector.inc"

}  // namespace
}  // namespace millrace::math::avx512
MILLRACE_TARGET_END
#pragma GCC diagnostic pop
