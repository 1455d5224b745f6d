// What AVX-512 kernels share about lanes: masks for tails, the one NaN, and the fold of the
// canonical 16-lane sum (8+8, 4+4, 2+2, 1+1). Everything here has internal linkage and stands in an
// AVX-512 target region; call it from one.
#pragma once

#include <immintrin.h>

#include "base/isa.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
MILLRACE_TARGET_AVX512
namespace millrace::lanes::avx512 {
namespace {

// The first `live` of sixteen lanes; all of them from 16 up, none from 0 down.
inline __mmask16 mask_of(long long live) {
  if (live >= 16) return 0xffff;
  return static_cast<__mmask16>(live <= 0 ? 0 : (1u << live) - 1);
}

// Every NaN as 0x7fc00000: which of two an operation passes on is the compiler's choice of order.
inline __m512 plain_nan(__m512 x) {
  const __mmask16 ordered = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
  return _mm512_mask_blend_ps(ordered, _mm512_set1_ps(__builtin_nanf("")), x);
}

inline float fold(__m512 v16) {
  const __m256 v8 = _mm256_add_ps(_mm512_castps512_ps256(v16), _mm512_extractf32x8_ps(v16, 1));
  const __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}

inline float largest_of(__m512 v16) {
  const __m256 v8 = _mm256_max_ps(_mm512_castps512_ps256(v16), _mm512_extractf32x8_ps(v16, 1));
  const __m128 v4 = _mm_max_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_max_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_max_ss(v2, _mm_movehdup_ps(v2)));
}

}  // namespace
}  // namespace millrace::lanes::avx512
MILLRACE_TARGET_END
#pragma GCC diagnostic pop
