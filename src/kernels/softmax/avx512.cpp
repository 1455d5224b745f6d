#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "base/isa.h"
#include "base/math_avx512.h"
#include "kernels/lanes_avx512.h"
#include "kernels/softmax/op.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

MILLRACE_TARGET_AVX512
namespace millrace::softmax::avx512 {
namespace {

using lanes::avx512::mask_of;

// max_ps(x, m) is m where x is NaN.
float largest(const float* x, long long n) {
  __m512 m = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  for (long long i = 0; i < n; i += 16) {
    const __mmask16 live = mask_of(n - i);
    m = _mm512_mask_max_ps(m, live, _mm512_maskz_loadu_ps(live, x + i), m);
  }
  return lanes::avx512::largest_of(m);
}

float exponentials(const float* x, float* y, long long n, float largest, float scale) {
  const __m512 m = _mm512_set1_ps(largest), s = _mm512_set1_ps(scale);
  __m512 sum = _mm512_setzero_ps();
  for (long long i = 0; i < n; i += 16) {
    const __mmask16 live = mask_of(n - i);
    const __m512 v = _mm512_maskz_loadu_ps(live, x + i);
    const __m512 e = math::avx512::exp(_mm512_mul_ps(_mm512_sub_ps(v, m), s));
    _mm512_mask_storeu_ps(y + i, live, e);
    sum = _mm512_add_ps(sum, _mm512_maskz_mov_ps(live, e));
  }
  return lanes::avx512::fold(sum);
}

void scale_row(float* y, long long n, float factor) {
  const __m512 f = _mm512_set1_ps(factor);
  for (long long i = 0; i < n; i += 16) {
    const __mmask16 live = mask_of(n - i);
    _mm512_mask_storeu_ps(y + i, live, _mm512_mul_ps(_mm512_maskz_loadu_ps(live, y + i), f));
  }
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  const Share rows = exec.rows(a.n_rows);
  for (long long r = rows.begin; r < rows.end; ++r) {
    const float* x = a.x + r * a.n;
    float* y = a.y + r * a.n;
    const float sum = exponentials(x, y, a.n, largest(x, a.n), a.scale);
    if (sum != sum)
      std::fill_n(y, a.n, std::numeric_limits<float>::quiet_NaN());
    else
      scale_row(y, a.n, 1.0f / sum);
  }
  return {};
}

}  // namespace millrace::softmax::avx512
MILLRACE_TARGET_END
