// The vectors of AVX2 kernels: eight floats, loads and stores with tails, masks, the one NaN, and
// the fold of the canonical 16-lane sum (8+8, 4+4, 2+2, 1+1). lanes_avx512.h has the same names, so
// a kernel's text can be written once and included in a target region of each (x/body.inc).
// Everything here has internal linkage and stands in an AVX2 target region; call it from one.
#pragma once

#include <immintrin.h>

#include "base/isa.h"

MILLRACE_TARGET_AVX2
namespace millrace::lanes::avx2 {
namespace {

using Float = __m256;  // + - * / are its operators; the compiler fuses nothing

constexpr int kWidth = 8;
constexpr int kVectors16 = 16 / kWidth;  // vectors that make 16 lanes

inline Float load(const float* p) {
  return _mm256_loadu_ps(p);
}
inline void store(float* p, Float x) {
  _mm256_storeu_ps(p, x);
}
inline Float splat(float x) {
  return _mm256_set1_ps(x);
}
inline Float fma(Float a, Float b, Float c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Float maximum(Float a, Float b) {
  return _mm256_max_ps(a, b);  // b where either is NaN
}
inline float first_of(Float x) {
  return _mm256_cvtss_f32(x);
}

// The first `live` of eight lanes; all of them from 8 up, none from 0 down.
inline __m256i mask_of(long long live) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const long long clamped = live < 0 ? 0 : live > 8 ? 8 : live;
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(clamped)), index);
}

// The first `live` elements, zeros for the others, which are neither read nor written.
inline Float load_first(const float* p, long long live) {
  return _mm256_maskload_ps(p, mask_of(live));
}
inline void store_first(float* p, long long live, Float x) {
  _mm256_maskstore_ps(p, mask_of(live), x);
}

// Lanes outside [begin, end) hold `other`.
inline Float lanes_within(Float x, long long begin, long long end, float other) {
  const __m256i live = _mm256_andnot_si256(mask_of(begin), mask_of(end));
  return _mm256_blendv_ps(splat(other), x, _mm256_castsi256_ps(live));
}

// A bit for each lane that is below the limit or NaN.
inline unsigned lanes_below(Float x, float limit) {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(x, splat(limit), _CMP_NGE_UQ)));
}

// Every NaN as 0x7fc00000: which of two an operation passes on is the compiler's choice of order.
inline Float plain_nan(Float x) {
  const Float ordered = _mm256_cmp_ps(x, x, _CMP_ORD_Q);
  return _mm256_blendv_ps(splat(__builtin_nanf("")), x, ordered);
}

inline float fold(const Float (&x)[kVectors16]) {
  const __m256 v8 = x[0] + x[1];
  const __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}

inline float largest_of(Float v8) {
  const __m128 v4 = _mm_max_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_max_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_max_ss(v2, _mm_movehdup_ps(v2)));
}

}  // namespace
}  // namespace millrace::lanes::avx2
MILLRACE_TARGET_END
