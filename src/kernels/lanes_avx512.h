// The vectors of AVX-512 kernels: sixteen floats, with the names of lanes_avx2.h. Everything here
// has internal linkage and stands in an AVX-512 target region; call it from one.
#pragma once

#include <immintrin.h>

#include "base/isa.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
MILLRACE_TARGET_AVX512
namespace millrace::lanes::avx512 {
namespace {

using Float = __m512;

constexpr int kWidth = 16;
constexpr int kVectors16 = 16 / kWidth;

inline Float load(const float* p) {
  return _mm512_loadu_ps(p);
}
inline void store(float* p, Float x) {
  _mm512_storeu_ps(p, x);
}
inline Float splat(float x) {
  return _mm512_set1_ps(x);
}
inline Float fma(Float a, Float b, Float c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline Float maximum(Float a, Float b) {
  return _mm512_max_ps(a, b);  // b where either is NaN
}
inline float first_of(Float x) {
  return _mm512_cvtss_f32(x);
}

// The first `live` of sixteen lanes; all of them from 16 up, none from 0 down.
inline __mmask16 mask_of(long long live) {
  if (live >= 16) return 0xffff;
  return static_cast<__mmask16>(live <= 0 ? 0 : (1u << live) - 1);
}

// The first `live` elements, zeros for the others, which are neither read nor written.
inline Float load_first(const float* p, long long live) {
  return _mm512_maskz_loadu_ps(mask_of(live), p);
}
inline void store_first(float* p, long long live, Float x) {
  _mm512_mask_storeu_ps(p, mask_of(live), x);
}

// Lanes outside [begin, end) hold `other`.
inline Float lanes_within(Float x, long long begin, long long end, float other) {
  const auto live = static_cast<__mmask16>(mask_of(end) & ~mask_of(begin));
  return _mm512_mask_blend_ps(live, splat(other), x);
}

// A bit for each lane that is below the limit or NaN.
inline unsigned lanes_below(Float x, float limit) {
  return _mm512_cmp_ps_mask(x, splat(limit), _CMP_NGE_UQ);
}

// Every NaN as 0x7fc00000: which of two an operation passes on is the compiler's choice of order.
inline Float plain_nan(Float x) {
  const __mmask16 ordered = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
  return _mm512_mask_blend_ps(ordered, splat(__builtin_nanf("")), x);
}

inline float fold(const Float (&x)[kVectors16]) {
  const __m256 v8 = _mm256_add_ps(_mm512_castps512_ps256(x[0]), _mm512_extractf32x8_ps(x[0], 1));
  const __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}

inline float largest_of(Float v16) {
  const __m256 v8 = _mm256_max_ps(_mm512_castps512_ps256(v16), _mm512_extractf32x8_ps(v16, 1));
  const __m128 v4 = _mm_max_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_max_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_max_ss(v2, _mm_movehdup_ps(v2)));
}

}  // namespace
}  // namespace millrace::lanes::avx512
MILLRACE_TARGET_END
#pragma GCC diagnostic pop
