// Two passes: the largest value, then the first place that holds its bits. The first runs at the
// speed of memory, which one pass that carries indices along does not; the second reads what the
// first left in cache and stops half way on average.
#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <limits>

#include "base/isa.h"
#include "kernels/argmax/op.h"
#include "kernels/lanes_avx2.h"

MILLRACE_TARGET_AVX2
namespace millrace::argmax::avx2 {
namespace {

using lanes::avx2::mask_of;

// NaN never wins: max_ps(x, m) is m where x is NaN. -Inf when nothing else is there.
float largest(const float* x, long long n) {
  __m256 m0 = _mm256_set1_ps(-std::numeric_limits<float>::infinity()), m1 = m0, m2 = m0, m3 = m0;
  long long i = 0;
  for (; i + 32 <= n; i += 32) {
    m0 = _mm256_max_ps(_mm256_loadu_ps(x + i), m0);
    m1 = _mm256_max_ps(_mm256_loadu_ps(x + i + 8), m1);
    m2 = _mm256_max_ps(_mm256_loadu_ps(x + i + 16), m2);
    m3 = _mm256_max_ps(_mm256_loadu_ps(x + i + 24), m3);
  }
  for (; i < n; i += 8) {
    const __m256 live = _mm256_castsi256_ps(mask_of(n - i));
    const __m256 v = _mm256_maskload_ps(x + i, mask_of(n - i));
    m0 = _mm256_blendv_ps(m0, _mm256_max_ps(v, m0), live);
  }
  return lanes::avx2::largest_of(_mm256_max_ps(_mm256_max_ps(m0, m1), _mm256_max_ps(m2, m3)));
}

// The first i with exactly these bits, or -1.
long long find(const float* x, long long n, float value) {
  const __m256i bits = _mm256_set1_epi32(std::bit_cast<int32_t>(value));
  for (long long i = 0; i < n; i += 8) {
    const __m256i live = mask_of(n - i);
    const __m256i v = _mm256_maskload_epi32(reinterpret_cast<const int*>(x + i), live);
    const __m256i hit = _mm256_and_si256(_mm256_cmpeq_epi32(v, bits), live);
    const int mask = _mm256_movemask_ps(_mm256_castsi256_ps(hit));
    if (mask != 0) return i + __builtin_ctz(static_cast<unsigned>(mask));
  }
  return -1;
}

int argmax_of(const float* x, long long n) {
  const float best = largest(x, n);
  // max_ps takes either zero for the larger: look for +0 first.
  long long at = find(x, n, best == 0.0f ? 0.0f : best);
  if (at < 0 && best == 0.0f) at = find(x, n, -0.0f);
  return at < 0 ? 0 : static_cast<int>(at);  // nothing but NaN
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  const Share rows = exec.rows(a.n_rows);
  for (long long r = rows.begin; r < rows.end; ++r) a.index[r] = argmax_of(a.x + r * a.n, a.n);
  return {};
}

}  // namespace millrace::argmax::avx2
MILLRACE_TARGET_END
