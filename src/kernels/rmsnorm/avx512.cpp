#include <immintrin.h>

#include <cmath>

#include "base/isa.h"
#include "kernels/lanes_avx512.h"
#include "kernels/rmsnorm/groups.h"
#include "kernels/rmsnorm/op.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

MILLRACE_TARGET_AVX512
namespace millrace::rmsnorm::avx512 {
namespace {

using lanes::avx512::fold;
using lanes::avx512::mask_of;

float sum_of_squares(const float* x, long long n) {
  __m512 sum = _mm512_setzero_ps();
  for (long long i = 0; i < n; i += 16) {
    const __m512 v = _mm512_maskz_loadu_ps(mask_of(n - i), x + i);
    sum = _mm512_fmadd_ps(v, v, sum);
  }
  return fold(sum);
}

void scale_row(const float* x, const float* weight, float* y, long long n, float scale) {
  const __m512 s = _mm512_set1_ps(scale);
  for (long long i = 0; i < n; i += 16) {
    const __mmask16 m = mask_of(n - i);
    const __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), s);
    _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(scaled, _mm512_maskz_loadu_ps(m, weight + i)));
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

}  // namespace millrace::rmsnorm::avx512
MILLRACE_TARGET_END
