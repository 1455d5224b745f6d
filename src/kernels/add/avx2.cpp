#include <immintrin.h>

#include "base/isa.h"
#include "kernels/add/op.h"
#include "kernels/add/runs.h"
#include "kernels/lanes_avx2.h"

MILLRACE_TARGET_AVX2
namespace millrace::add::avx2 {

using lanes::avx2::plain_nan;

Status run(const Args& a, Exec& exec) {
  for_each_sum(a, exec, [](const float* x, const float* b, float* y, long long n) {
    long long i = 0;
    for (; i + 8 <= n; i += 8) {
      const __m256 sum = _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(b + i));
      _mm256_storeu_ps(y + i, plain_nan(sum));
    }
    if (i == n) return;
    const __m256i live = lanes::avx2::mask_of(n - i);
    const __m256 sum =
        _mm256_add_ps(_mm256_maskload_ps(x + i, live), _mm256_maskload_ps(b + i, live));
    _mm256_maskstore_ps(y + i, live, plain_nan(sum));
  });
  return {};
}

}  // namespace millrace::add::avx2
MILLRACE_TARGET_END
