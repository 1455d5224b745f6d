#include <immintrin.h>

#include "base/isa.h"
#include "kernels/expert_sum/op.h"
#include "kernels/lanes_avx2.h"

MILLRACE_TARGET_AVX2
namespace millrace::expert_sum::avx2 {
namespace {

// Eight outputs, or the `live` of them.
void sum_at(const Args& a, long long row, long long i, float divisor, __m256i live) {
  const float* x = a.x + row * a.n_used * a.n + i;
  const float* weights = a.weights + row * a.n_used;
  __m256 sum = _mm256_setzero_ps();
  for (long long j = 0; j < a.n_used; ++j)
    sum = _mm256_fmadd_ps(_mm256_set1_ps(weights[j] / divisor),
                          _mm256_maskload_ps(x + j * a.n, live), sum);
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
  sum = _mm256_blendv_ps(sum, nan, _mm256_cmp_ps(sum, sum, _CMP_UNORD_Q));
  _mm256_maskstore_ps(a.y + row * a.n + i, live, sum);
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  const Share rows = exec.rows(a.n_rows), columns = exec.columns(a.n);
  for (long long row = rows.begin; row < rows.end; ++row) {
    const float divisor = a.normalise ? weight_sum(a, row) : 1.0f;
    for (long long i = columns.begin; i < columns.end; i += 8)
      sum_at(a, row, i, divisor, lanes::avx2::mask_of(columns.end - i));
  }
  return {};
}

}  // namespace millrace::expert_sum::avx2
MILLRACE_TARGET_END
