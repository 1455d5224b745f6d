#include <immintrin.h>

#include "base/isa.h"
#include "base/math_avx2.h"
#include "kernels/lanes_avx2.h"
#include "kernels/runs.h"
#include "kernels/silu_mul/op.h"

MILLRACE_TARGET_AVX2
namespace millrace::silu_mul::avx2 {
namespace {

using lanes::avx2::plain_nan;
namespace several = math::avx2::several;
constexpr int kSeveral = several::kVectors;

[[gnu::always_inline]] inline void several_at(const Args& a, long long i) {
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

void run_at(const Args& a, long long i, long long end) {
  for (; i + 8 * kSeveral <= end; i += 8 * kSeveral) several_at(a, i);
  for (; i + 8 <= end; i += 8) {
    const __m256 gate = math::avx2::silu(_mm256_loadu_ps(a.gate + i));
    const __m256 product = _mm256_mul_ps(gate, _mm256_loadu_ps(a.up + i));
    _mm256_storeu_ps(a.y + i, plain_nan(product));
  }
  if (i < end) {
    const __m256i live = lanes::avx2::mask_of(end - i);
    const __m256 gate = math::avx2::silu(_mm256_maskload_ps(a.gate + i, live));
    const __m256 product = _mm256_mul_ps(gate, _mm256_maskload_ps(a.up + i, live));
    _mm256_maskstore_ps(a.y + i, live, plain_nan(product));
  }
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  for_each_run(exec, a.n_rows, a.n, [&](int64_t first, int64_t n) { run_at(a, first, first + n); });
  return {};
}

}  // namespace millrace::silu_mul::avx2
MILLRACE_TARGET_END
