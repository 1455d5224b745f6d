#include <immintrin.h>

#include "base/isa.h"
#include "base/math_avx2.h"
#include "kernels/lanes_avx2.h"
#include "kernels/silu_mul/floats.h"
#include "kernels/silu_mul/op.h"

MILLRACE_TARGET_AVX2
namespace millrace::silu_mul::avx2 {
namespace {

using lanes::avx2::plain_nan;
namespace several = math::avx2::several;
constexpr int kSeveral = several::kVectors;

[[gnu::always_inline]] inline void several_at(const Floats& a, long long i) {
  several::Float gate;
#pragma GCC unroll 4
  for (int v = 0; v < kSeveral; ++v) gate.v[v] = _mm256_loadu_ps(a.gate + i + 8 * v);
  gate = several::silu(gate);
#pragma GCC unroll 4
  for (int v = 0; v < kSeveral; ++v) {
    const __m256 y = _mm256_mul_ps(gate.v[v], _mm256_loadu_ps(a.up + i + 8 * v));
    _mm256_storeu_ps(a.y + i + 8 * v, plain_nan(y));
  }
}

}  // namespace

Status run(const Args& args, Exec& exec) {
  const Floats a(args);
  const Share share = exec.share(args.n_rows * args.n, 16);
  long long i = share.begin;
  for (; i + 8 * kSeveral <= share.end; i += 8 * kSeveral) several_at(a, i);
  for (; i + 8 <= share.end; i += 8) {
    const __m256 gate = math::avx2::silu(_mm256_loadu_ps(a.gate + i));
    const __m256 product = _mm256_mul_ps(gate, _mm256_loadu_ps(a.up + i));
    _mm256_storeu_ps(a.y + i, plain_nan(product));
  }
  if (i < share.end) {
    const __m256i live = lanes::avx2::mask_of(share.end - i);
    const __m256 gate = math::avx2::silu(_mm256_maskload_ps(a.gate + i, live));
    const __m256 product = _mm256_mul_ps(gate, _mm256_maskload_ps(a.up + i, live));
    _mm256_maskstore_ps(a.y + i, live, plain_nan(product));
  }
  return {};
}

}  // namespace millrace::silu_mul::avx2
MILLRACE_TARGET_END
