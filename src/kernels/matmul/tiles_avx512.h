// What the AVX-512 products share: how parts of a tile are loaded, how outputs are masked, and the
// kernels of the 32-element blocks, with which Q4_K and Q5_K are multiplied once expanded.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "base/isa.h"
#include "kernels/matmul/output.h"
#include "kernels/matmul/tiles.h"
#include "kernels/quantize/row.h"
#include "tensor/blocks.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

MILLRACE_TARGET_AVX512_VNNI
namespace millrace::matmul::avx512_vnni {

inline constexpr int kGroups = quantize::kBlock / 4;  // of four k: one vpdpbusd each
inline constexpr int kMaxRows = 4, kMaxTiles = 3;     // of expanded weights: 12 int, 12 f32 sums
inline constexpr int kPackedRows = 24;                // beyond, a tile is expanded once
inline constexpr int kAhead = 2048;                   // how far one row fetches in each stream
// Three tiles of 18 blocks, of 48 KB of L1; hosts with AVX-512 have 1 MB of L2 and more.
inline constexpr int kChunkBytes = 35 << 10, kPanelBytes = 640 << 10;

const tiles16::TileKernel& kernel_of(DType type);

template <class T>
[[gnu::always_inline]] inline T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

[[gnu::always_inline]] inline __m512i bytes_at(const std::byte* at) {
  return _mm512_loadu_si512(at);
}

[[gnu::always_inline]] inline __m512 f16_at(const std::byte* at) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}

// What codes of IQ4_NL and IQ4_XS stand for, plus 128.
[[gnu::always_inline]] inline __m512i iq4_values(__m512i codes) {
  const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kIq4Values));
  const __m512i table = _mm512_xor_si512(_mm512_broadcast_i32x4(values), _mm512_set1_epi8(-128));
  return _mm512_shuffle_epi8(table, codes);
}

[[gnu::always_inline]] inline __mmask16 mask_of(long long live) {
  return static_cast<__mmask16>(live >= 16 ? 0xffff : (1u << live) - 1);
}

// A NaN result has one pattern, whichever operand it came from.
[[gnu::always_inline]] inline __m512 canonical(__m512 sum) {
  const __mmask16 nan = _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q);
  return _mm512_mask_mov_ps(sum, nan, _mm512_castsi512_ps(_mm512_set1_epi32(kNanBits)));
}

// Where the next group of R rows will be written, a row with each of the first blocks. A store that
// waits for its line holds up those behind it; asked for all at once, the lines would take every
// fill buffer from what is being multiplied.
template <int T, int R>
[[gnu::always_inline]] inline void fetch_next_y(const tiles16::Product& p, long long b) {
  if (b >= R) return;
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) __builtin_prefetch(p.y + (R + b) * p.y_stride + 16 * t, 1);
}

// T tiles of 16 outputs times R rows in registers: T * R integer sums and as many f32 sums.
template <int T, int R, bool Min>
struct Sums {
  tiles16::At<R> q, dx, extra;
  __m512 acc[T][R];
  __m512i sum[T][R];

  [[gnu::always_inline]] explicit Sums(const tiles16::Product& p)
      : q(p.x.q, p.x.q_stride), dx(p.x.dx, p.x.dx_stride), extra(p.x.extra, p.x.extra_stride) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t)
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[t][r] = _mm512_setzero_ps();
    if (p.first) return;
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t)
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        acc[t][r] =
            _mm512_maskz_loadu_ps(mask_of(p.n_live - 16 * t), p.y + r * p.y_stride + 16 * t);
  }

  [[gnu::always_inline]] void begin_block() {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t)
        sum[t][r] = Min ? _mm512_setzero_si512() : _mm512_set1_epi32(load<int>(extra[r]));
  }

  // The rows of the next group, while these are multiplied.
  [[gnu::always_inline]] void fetch_next() {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) _mm_prefetch(q[r] + R * q.stride, _MM_HINT_T0);
  }

  // Four k: group g of the block.
  [[gnu::always_inline]] void add(int g, const __m512i (&w)[T]) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      __m512i four = _mm512_set1_epi32(load<int>(q[r] + 4 * g));
      // One load for all tiles, not one inside each product; of 3 x 4 g++ 12 makes it so by itself,
      // and half a percent better.
      if (T * R != kMaxTiles * kMaxRows) asm("" : "+v"(four));
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) sum[t][r] = _mm512_dpbusd_epi32(sum[t][r], w[t], four);
    }
  }

  [[gnu::always_inline]] void end_block(const __m512 (&d)[T], const __m512 (&m)[T]) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        const __m512 scale = _mm512_mul_ps(d[t], _mm512_set1_ps(load<float>(dx[r])));
        acc[t][r] = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(sum[t][r]), acc[t][r]);
        if (Min)
          acc[t][r] = _mm512_fmadd_ps(m[t], _mm512_set1_ps(load<float>(extra[r])), acc[t][r]);
      }
    q.advance(quantize::kBlock);
    dx.advance(4);
    extra.advance(4);
  }

  // A partial sum that is NaN is made canonical early: it stays NaN.
  [[gnu::always_inline]] void store(const tiles16::Product& p) const {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const __mmask16 live = mask_of(p.n_live - 16 * t);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        _mm512_mask_storeu_ps(p.y + r * p.y_stride + 16 * t, live, canonical(acc[t][r]));
    }
  }
};

}  // namespace millrace::matmul::avx512_vnni
MILLRACE_TARGET_END
