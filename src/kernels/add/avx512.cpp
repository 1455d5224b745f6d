#include <immintrin.h>

#include "base/isa.h"
#include "kernels/add/op.h"
#include "kernels/lanes_avx512.h"

MILLRACE_TARGET_AVX512
namespace millrace::add::avx512 {

Status run(const Args& a, Exec& exec) {
  const Share share = exec.share(a.n_rows * a.n, 16);
  for (long long i = share.begin; i < share.end; i += 16) {
    const __mmask16 live = lanes::avx512::mask_of(share.end - i);
    const __m512 sum =
        _mm512_add_ps(_mm512_maskz_loadu_ps(live, a.a + i), _mm512_maskz_loadu_ps(live, a.b + i));
    _mm512_mask_storeu_ps(a.y + i, live, lanes::avx512::plain_nan(sum));
  }
  return {};
}

}  // namespace millrace::add::avx512
MILLRACE_TARGET_END
