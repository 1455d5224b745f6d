#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "base/isa.h"
#include "base/math_avx2.h"
#include "kernels/lanes_avx2.h"
#include "kernels/softmax/op.h"

MILLRACE_TARGET_AVX2
namespace millrace::softmax::avx2 {
namespace {

using lanes::avx2::mask_of;

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// max_ps(x, m) is m where x is NaN.
float largest(const float* x, long long n) {
  __m256 lo = _mm256_set1_ps(kLowest), hi = lo;
  long long i = 0;
  for (; i + 16 <= n; i += 16) {
    lo = _mm256_max_ps(_mm256_loadu_ps(x + i), lo);
    hi = _mm256_max_ps(_mm256_loadu_ps(x + i + 8), hi);
  }
  for (; i < n; i += 8) {
    const __m256i live = mask_of(n - i);
    const __m256 v = _mm256_max_ps(_mm256_maskload_ps(x + i, live), lo);
    lo = _mm256_blendv_ps(lo, v, _mm256_castsi256_ps(live));
  }
  return lanes::avx2::largest_of(_mm256_max_ps(lo, hi));
}

struct Exponent {
  __m256 largest, scale;
  __m256 of(__m256 x) const {
    return math::avx2::exp(_mm256_mul_ps(_mm256_sub_ps(x, largest), scale));
  }
};

// Writes the exponentials of the first `live` of eight and returns them, zero elsewhere.
__m256 tail(const Exponent& e, const float* x, float* y, long long live) {
  const __m256i mask = mask_of(live);
  const __m256 v = _mm256_and_ps(e.of(_mm256_maskload_ps(x, mask)), _mm256_castsi256_ps(mask));
  _mm256_maskstore_ps(y, mask, v);
  return v;
}

float exponentials(const Exponent& e, const float* x, float* y, long long n) {
  __m256 lo = _mm256_setzero_ps(), hi = lo;
  long long i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256 a = e.of(_mm256_loadu_ps(x + i)), b = e.of(_mm256_loadu_ps(x + i + 8));
    _mm256_storeu_ps(y + i, a);
    _mm256_storeu_ps(y + i + 8, b);
    lo = _mm256_add_ps(lo, a);
    hi = _mm256_add_ps(hi, b);
  }
  if (i < n) {
    lo = _mm256_add_ps(lo, tail(e, x + i, y + i, n - i));
    hi = _mm256_add_ps(hi, tail(e, x + i + 8, y + i + 8, n - i - 8));
  }
  return lanes::avx2::fold(lo, hi);
}

void scale_row(float* y, long long n, float factor) {
  const __m256 f = _mm256_set1_ps(factor);
  long long i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(y + i), f));
  if (i == n) return;
  const __m256i live = mask_of(n - i);
  _mm256_maskstore_ps(y + i, live, _mm256_mul_ps(_mm256_maskload_ps(y + i, live), f));
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  const Share rows = exec.rows(a.n_rows);
  for (long long r = rows.begin; r < rows.end; ++r) {
    const float* x = a.x + r * a.n;
    float* y = a.y + r * a.n;
    const Exponent e = {_mm256_set1_ps(largest(x, a.n)), _mm256_set1_ps(a.scale)};
    const float sum = exponentials(e, x, y, a.n);
    if (sum != sum)
      std::fill_n(y, a.n, std::numeric_limits<float>::quiet_NaN());
    else
      scale_row(y, a.n, 1.0f / sum);
  }
  return {};
}

}  // namespace millrace::softmax::avx2
MILLRACE_TARGET_END
