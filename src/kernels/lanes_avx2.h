// What AVX2 kernels share about lanes: masks for tails, the one NaN, and the fold of the canonical
// 16-lane sum (two vectors of eight: 8+8, 4+4, 2+2, 1+1). Everything here has internal linkage and
// stands in an AVX2 target region; call it from one.
#pragma once

#include <immintrin.h>

#include "base/isa.h"

MILLRACE_TARGET_AVX2
namespace millrace::lanes::avx2 {
namespace {

// The first `live` of eight lanes; all of them from 8 up, none from 0 down.
inline __m256i mask_of(long long live) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const long long clamped = live < 0 ? 0 : live > 8 ? 8 : live;
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(clamped)), index);
}

// Every NaN as 0x7fc00000: which of two an operation passes on is the compiler's choice of order.
inline __m256 plain_nan(__m256 x) {
  const __m256 ordered = _mm256_cmp_ps(x, x, _CMP_ORD_Q);
  return _mm256_blendv_ps(_mm256_set1_ps(__builtin_nanf("")), x, ordered);
}

inline float fold(__m256 lo, __m256 hi) {
  const __m256 v8 = _mm256_add_ps(lo, hi);
  const __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}

inline float largest_of(__m256 v8) {
  const __m128 v4 = _mm_max_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_max_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_max_ss(v2, _mm_movehdup_ps(v2)));
}

}  // namespace
}  // namespace millrace::lanes::avx2
MILLRACE_TARGET_END
