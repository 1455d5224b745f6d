#include <immintrin.h>

#include "base/isa.h"
#include "base/math_avx512.h"
#include "kernels/lanes_avx512.h"
#include "kernels/silu_mul/floats.h"
#include "kernels/silu_mul/op.h"

MILLRACE_TARGET_AVX512
namespace millrace::silu_mul::avx512 {
namespace {

namespace several = math::avx512::several;
constexpr int kSeveral = several::kVectors;

[[gnu::always_inline]] inline void several_at(const Floats& a, long long i) {
  several::Float gate;
#pragma GCC unroll 4
  for (int v = 0; v < kSeveral; ++v) gate.v[v] = _mm512_loadu_ps(a.gate + i + 16 * v);
  gate = several::silu(gate);
#pragma GCC unroll 4
  for (int v = 0; v < kSeveral; ++v) {
    const __m512 y = _mm512_mul_ps(gate.v[v], _mm512_loadu_ps(a.up + i + 16 * v));
    _mm512_storeu_ps(a.y + i + 16 * v, lanes::avx512::plain_nan(y));
  }
}

}  // namespace

Status run(const Args& args, Exec& exec) {
  const Floats a(args);
  const Share share = exec.share(args.n_rows * args.n, 16);
  long long i = share.begin;
  for (; i + 16 * kSeveral <= share.end; i += 16 * kSeveral) several_at(a, i);
  for (; i < share.end; i += 16) {
    const __mmask16 live = lanes::avx512::mask_of(share.end - i);
    const __m512 gate = math::avx512::silu(_mm512_maskz_loadu_ps(live, a.gate + i));
    const __m512 up = _mm512_maskz_loadu_ps(live, a.up + i);
    _mm512_mask_storeu_ps(a.y + i, live, lanes::avx512::plain_nan(_mm512_mul_ps(gate, up)));
  }
  return {};
}

}  // namespace millrace::silu_mul::avx512
MILLRACE_TARGET_END
