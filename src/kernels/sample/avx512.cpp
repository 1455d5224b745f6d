#include <immintrin.h>

#include "base/isa.h"
#include "base/math_avx512.h"
#include "kernels/lanes_avx512.h"
#include "kernels/sample/op.h"
#include "kernels/sample/rows.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

MILLRACE_TARGET_AVX512
namespace millrace::sample::avx512 {
namespace {

double fold(__m512d lo, __m512d hi) {
  const __m512d v8 = _mm512_add_pd(lo, hi);
  const __m256d v4 = _mm256_add_pd(_mm512_castpd512_pd256(v8), _mm512_extractf64x4_pd(v8, 1));
  const __m128d v2 = _mm_add_pd(_mm256_castpd256_pd128(v4), _mm256_extractf128_pd(v4, 1));
  return _mm_cvtsd_f64(_mm_add_sd(v2, _mm_unpackhi_pd(v2, v2)));
}

double mass(const float* x, long long n, float largest, float scale) {
  const __m512 m = _mm512_set1_ps(largest), s = _mm512_set1_ps(scale);
  __m512d lo = _mm512_setzero_pd(), hi = lo;
  for (long long i = 0; i < n; i += 16) {
    const __mmask16 live = lanes::avx512::mask_of(n - i);
    const __m512 v = _mm512_maskz_loadu_ps(live, x + i);
    const __m512 e = math::avx512::exp(_mm512_mul_ps(_mm512_sub_ps(v, m), s));
    const __m512 w = _mm512_maskz_mov_ps(_mm512_mask_cmp_ps_mask(live, v, v, _CMP_ORD_Q), e);
    lo = _mm512_add_pd(lo, _mm512_cvtps_pd(_mm512_castps512_ps256(w)));
    hi = _mm512_add_pd(hi, _mm512_cvtps_pd(_mm512_extractf32x8_ps(w, 1)));
  }
  return fold(lo, hi);
}

}  // namespace

Status run(const Args& args, Exec& exec) {
  return run_rows(args, exec, mass);
}

}  // namespace millrace::sample::avx512
MILLRACE_TARGET_END
