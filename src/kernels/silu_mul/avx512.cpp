#include <immintrin.h>

#include "base/isa.h"
#include "base/math_avx512.h"
#include "kernels/lanes_avx512.h"
#include "kernels/silu_mul/op.h"

MILLRACE_TARGET_AVX512
namespace millrace::silu_mul::avx512 {

Status run(const Args& a, Exec& exec) {
  const Share share = exec.share(a.n_rows * a.n, 16);
  for (long long i = share.begin; i < share.end; i += 16) {
    const __mmask16 live = lanes::avx512::mask_of(share.end - i);
    const __m512 gate = math::avx512::silu(_mm512_maskz_loadu_ps(live, a.gate + i));
    const __m512 up = _mm512_maskz_loadu_ps(live, a.up + i);
    _mm512_mask_storeu_ps(a.y + i, live, lanes::avx512::plain_nan(_mm512_mul_ps(gate, up)));
  }
  return {};
}

}  // namespace millrace::silu_mul::avx512
MILLRACE_TARGET_END
