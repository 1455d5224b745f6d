#include <immintrin.h>

#include "base/isa.h"
#include "kernels/add/op.h"
#include "kernels/lanes_avx2.h"

MILLRACE_TARGET_AVX2
namespace millrace::add::avx2 {

using lanes::avx2::plain_nan;

Status run(const Args& a, Exec& exec) {
  const Share share = exec.share(a.n_rows * a.n, 16);
  long long i = share.begin;
  for (; i + 8 <= share.end; i += 8) {
    const __m256 sum = _mm256_add_ps(_mm256_loadu_ps(a.a + i), _mm256_loadu_ps(a.b + i));
    _mm256_storeu_ps(a.y + i, plain_nan(sum));
  }
  const __m256i live = lanes::avx2::mask_of(share.end - i);
  if (i < share.end) {
    const __m256 sum =
        _mm256_add_ps(_mm256_maskload_ps(a.a + i, live), _mm256_maskload_ps(a.b + i, live));
    _mm256_maskstore_ps(a.y + i, live, plain_nan(sum));
  }
  return {};
}

}  // namespace millrace::add::avx2
MILLRACE_TARGET_END
