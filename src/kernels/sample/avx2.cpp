#include <immintrin.h>

#include "base/isa.h"
#include "base/math_avx2.h"
#include "kernels/lanes_avx2.h"
#include "kernels/sample/op.h"
#include "kernels/sample/rows.h"

MILLRACE_TARGET_AVX2
namespace millrace::sample::avx2 {
namespace {

using lanes::avx2::mask_of;

// Sixteen f64 lanes, four to a vector.
struct Lanes {
  __m256d v[4] = {};

  void add(int half, __m256 e) {
    v[2 * half] = _mm256_add_pd(v[2 * half], _mm256_cvtps_pd(_mm256_castps256_ps128(e)));
    v[2 * half + 1] = _mm256_add_pd(v[2 * half + 1], _mm256_cvtps_pd(_mm256_extractf128_ps(e, 1)));
  }
  double fold() const {
    const __m256d v4 = _mm256_add_pd(_mm256_add_pd(v[0], v[2]), _mm256_add_pd(v[1], v[3]));
    const __m128d v2 = _mm_add_pd(_mm256_castpd256_pd128(v4), _mm256_extractf128_pd(v4, 1));
    return _mm_cvtsd_f64(_mm_add_sd(v2, _mm_unpackhi_pd(v2, v2)));
  }
};

struct Weight {
  __m256 largest, scale;
  // Zero where x is NaN.
  __m256 of(__m256 x) const {
    const __m256 e = math::avx2::exp(_mm256_mul_ps(_mm256_sub_ps(x, largest), scale));
    return _mm256_and_ps(e, _mm256_cmp_ps(x, x, _CMP_ORD_Q));
  }
};

double mass(const float* x, long long n, float largest, float scale) {
  const Weight weight = {_mm256_set1_ps(largest), _mm256_set1_ps(scale)};
  Lanes sum;
  long long i = 0;
  for (; i + 16 <= n; i += 16) {
    sum.add(0, weight.of(_mm256_loadu_ps(x + i)));
    sum.add(1, weight.of(_mm256_loadu_ps(x + i + 8)));
  }
  for (int half = 0; half < 2 && i < n; ++half, i += 8) {
    const __m256i live = mask_of(n - i);
    const __m256 e = weight.of(_mm256_maskload_ps(x + i, live));
    sum.add(half, _mm256_and_ps(e, _mm256_castsi256_ps(live)));
  }
  return sum.fold();
}

}  // namespace

Status run(const Args& args, Exec& exec) {
  return run_rows(args, exec, mass);
}

}  // namespace millrace::sample::avx2
MILLRACE_TARGET_END
