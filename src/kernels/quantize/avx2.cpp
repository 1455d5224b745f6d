#include <immintrin.h>

#include "base/isa.h"
#include "kernels/quantize/op.h"
#include "kernels/quantize/row.h"

MILLRACE_TARGET_AVX2
namespace millrace::quantize::avx2 {
namespace {

// Neighbouring blocks of one row.
struct Run {
  const float* x;
  signed char* q;
  float* scale;
  int* sum;
  long long n_blocks;
};

Run run_at(const Args& a, long long row, Share columns) {
  const MutableRow y = mutable_row_at(a.y, a.k, row);
  const long long b = columns.begin / kBlock;
  return {a.x + row * a.k + columns.begin, y.q + columns.begin, y.scale + b, y.sum + b,
          (columns.end - columns.begin) / kBlock};
}

__m256i magnitude(const float* x) {
  return _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)),
                          _mm256_set1_epi32(0x7fffffff));
}

__m128i largest(const float* x) {
  const __m256i a = _mm256_max_epi32(magnitude(x), magnitude(x + 8));
  const __m256i b = _mm256_max_epi32(magnitude(x + 16), magnitude(x + 24));
  const __m256i m = _mm256_max_epi32(a, b);
  return _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
}

__m256i nearest(const float* x, __m256 inverse) {
  return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
}

__m256i quantize_block(const float* x, float inverse, int usable) {
  const __m256 v = _mm256_set1_ps(inverse);
  const __m256i a = _mm256_packs_epi32(nearest(x, v), nearest(x + 8, v));
  const __m256i b = _mm256_packs_epi32(nearest(x + 16, v), nearest(x + 24, v));
  // Packing works in 128-bit halves; put the groups of four back in order.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i q = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b), order);
  return _mm256_and_si256(q, _mm256_set1_epi32(usable));
}

struct Scales4 {
  __m128 scale, inverse;
  __m128i usable;  // all ones where q is not 0 by definition
};

// m[b] holds four magnitudes (as integers), the largest of block b among them.
inline __m128i largest_of_each(const __m128i m[4]) {
  const __m128i a = _mm_max_epi32(_mm_unpacklo_epi32(m[0], m[1]), _mm_unpackhi_epi32(m[0], m[1]));
  const __m128i b = _mm_max_epi32(_mm_unpacklo_epi32(m[2], m[3]), _mm_unpackhi_epi32(m[2], m[3]));
  return _mm_max_epi32(_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b));
}

inline Scales4 scales_of(const __m128i m[4]) {
  const __m128i bits = largest_of_each(m);
  const __m128i not_finite = _mm_cmpgt_epi32(bits, _mm_set1_epi32(kInfiniteBits - 1));
  const __m128i large_enough = _mm_cmpgt_epi32(bits, _mm_set1_epi32(kLeastBits - 1));
  const __m128i usable = _mm_andnot_si128(not_finite, large_enough);
  const __m128 amax = _mm_castsi128_ps(bits), limit = _mm_set1_ps(127.0f);
  const __m128 kept = _mm_and_ps(_mm_div_ps(amax, limit), _mm_castsi128_ps(usable));
  const __m128i nan = _mm_and_si128(not_finite, _mm_set1_epi32(kNanBits));
  return {_mm_or_ps(kept, _mm_castsi128_ps(nan)), _mm_div_ps(limit, amax), usable};
}

// The sum of a block's q in two halves, each biased by 2048.
inline __m128i biased_sums(__m256i q) {
  const __m256i s =
      _mm256_sad_epu8(_mm256_xor_si256(q, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
  return _mm_add_epi64(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
}

inline __m128i sums_of(const __m128i s[4]) {
  const __m128i a = _mm_add_epi64(_mm_unpacklo_epi64(s[0], s[1]), _mm_unpackhi_epi64(s[0], s[1]));
  const __m128i b = _mm_add_epi64(_mm_unpacklo_epi64(s[2], s[3]), _mm_unpackhi_epi64(s[2], s[3]));
  const __m128 low = _mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), 0x88);
  return _mm_sub_epi32(_mm_castps_si128(low), _mm_set1_epi32(32 * 128));
}

// 1 or 4 blocks; the scales and sums of four are computed in any case. The
// loops are unrolled by pragma: at -O2 g++ 12 keeps m and sums in memory otherwise.
template <int n>
inline void quantize_blocks(const Run& run, long long b) {
  const float* x = run.x + b * kBlock;
  __m128i m[4], sums[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) m[i] = i < n ? largest(x + i * kBlock) : m[0];
  const Scales4 scales = scales_of(m);
  alignas(16) float inverse[4];
  alignas(16) int usable[4];
  _mm_store_ps(inverse, scales.inverse);
  _mm_store_si128(reinterpret_cast<__m128i*>(usable), scales.usable);
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    const __m256i q = quantize_block(x + i * kBlock, inverse[i], usable[i]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(run.q + (b + i) * kBlock), q);
    sums[i] = biased_sums(q);
  }
#pragma GCC unroll 4
  for (int i = n; i < 4; ++i) sums[i] = sums[0];
  if (n == 4) {
    _mm_storeu_ps(run.scale + b, scales.scale);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(run.sum + b), sums_of(sums));
  } else {
    run.scale[b] = _mm_cvtss_f32(scales.scale);
    run.sum[b] = _mm_cvtsi128_si32(sums_of(sums));
  }
}

void quantize_run(const Run& run) {
  long long b = 0;
  for (; b + 4 <= run.n_blocks; b += 4) quantize_blocks<4>(run, b);
  for (; b < run.n_blocks; ++b) quantize_blocks<1>(run, b);
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  const Share rows = exec.rows(a.n_rows), columns = exec.columns(a.k);
  for (long long r = rows.begin; r < rows.end; ++r) quantize_run(run_at(a, r, columns));
  return {};
}

}  // namespace millrace::quantize::avx2
MILLRACE_TARGET_END
