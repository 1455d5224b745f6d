#include <immintrin.h>

#include "base/isa.h"
#include "kernels/add/op.h"
#include "kernels/add/runs.h"
#include "kernels/lanes_avx512.h"

MILLRACE_TARGET_AVX512
namespace millrace::add::avx512 {

Status run(const Args& a, Exec& exec) {
  for_each_sum(a, exec, [](const float* x, const float* b, float* y, long long n) {
    for (long long i = 0; i < n; i += 16) {
      const __mmask16 live = lanes::avx512::mask_of(n - i);
      const __m512 sum =
          _mm512_add_ps(_mm512_maskz_loadu_ps(live, x + i), _mm512_maskz_loadu_ps(live, b + i));
      _mm512_mask_storeu_ps(y + i, live, lanes::avx512::plain_nan(sum));
    }
  });
  return {};
}

}  // namespace millrace::add::avx512
MILLRACE_TARGET_END
