#include <immintrin.h>

#include <cmath>

#include "base/isa.h"
#include "kernels/lanes_avx2.h"
#include "kernels/rmsnorm/groups.h"
#include "kernels/rmsnorm/op.h"

MILLRACE_TARGET_AVX2
namespace millrace::rmsnorm::avx2 {
namespace {

using lanes::avx2::fold;
using lanes::avx2::mask_of;

float sum_of_squares(const float* x, long long n) {
  __m256 lo = _mm256_setzero_ps(), hi = _mm256_setzero_ps();
  long long i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
    lo = _mm256_fmadd_ps(a, a, lo);
    hi = _mm256_fmadd_ps(b, b, hi);
  }
  if (i < n) {
    const __m256 a = _mm256_maskload_ps(x + i, mask_of(n - i));
    const __m256 b = _mm256_maskload_ps(x + i + 8, mask_of(n - i - 8));
    lo = _mm256_fmadd_ps(a, a, lo);
    hi = _mm256_fmadd_ps(b, b, hi);
  }
  return fold(lo, hi);
}

void scale_row(const float* x, const float* weight, float* y, long long n, float scale) {
  const __m256 s = _mm256_set1_ps(scale);
  long long i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(x + i), s),
                                          _mm256_loadu_ps(weight + i)));
  if (i < n) {
    const __m256i m = mask_of(n - i);
    const __m256 scaled = _mm256_mul_ps(_mm256_maskload_ps(x + i, m), s);
    _mm256_maskstore_ps(y + i, m, _mm256_mul_ps(scaled, _mm256_maskload_ps(weight + i, m)));
  }
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  const auto* x = static_cast<const float*>(a.x);
  auto* y = static_cast<float*>(a.y);
  for_each_group(a, exec, [&](long long g) {
    const float mean = sum_of_squares(x + g * a.n, a.n) / static_cast<float>(a.n);
    scale_row(x + g * a.n, a.weight, y + g * a.n, a.n, 1.0f / std::sqrt(mean + a.eps));
  });
  return {};
}

}  // namespace millrace::rmsnorm::avx2
MILLRACE_TARGET_END
