#include <immintrin.h>

#include <array>
#include <utility>

#include "base/isa.h"
#include "kernels/lanes_avx512.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul/tiles_avx512.h"
#include "kernels/quantize/row.h"

MILLRACE_TARGET_AVX512_VNNI
namespace millrace::matmul::avx512_vnni {
namespace {

using lanes::avx512::Float;
using lanes::avx512::kVectors16;
using lanes::avx512::kWidth;
using lanes::avx512::splat;
using quantize::kBlock;
using tiles16::BlockLayout;
using tiles16::kOutputs;
using tiles16::Product;
using tiles16::Run;

// vpdpbusd takes unsigned weights: those of a signed format are stored or made q + 2^bias_shift,
// and the sum of that bias times x is taken off again, exactly, where the integer sum begins.
struct Format {
  BlockLayout at;
  bool has_min = false, has_high = false;
  bool whole_bytes = false;  // q is stored so, else in nibbles
  bool table = false;        // a code is an index of kIq4Values
  int bias_shift = 0;        // where there is no minimum
  // The registers' share of a product with few rows: decoding a weight pays off over many rows, but
  // each row's load pays off over many tiles. Q8_0 needs no decoding.
  int packed_tiles = 2, packed_rows = 8;
};
constexpr Format kQ8_0{.at = tiles16::kQ8_0,
                       .whole_bytes = true,
                       .bias_shift = 7,
                       .packed_tiles = 3,
                       .packed_rows = 4};
constexpr Format kQ4_0{.at = tiles16::kQ4_0, .bias_shift = 3};
constexpr Format kQ4_1{.at = tiles16::kQ4_1, .has_min = true};
constexpr Format kQ5_0{.at = tiles16::kQ5_0, .has_high = true, .bias_shift = 4};
constexpr Format kQ5_1{.at = tiles16::kQ5_1, .has_min = true, .has_high = true};
constexpr Format kIq4Nl{.at = tiles16::kIq4Nl, .table = true, .bias_shift = 7};

constexpr int expanded_bytes(bool has_min) {
  return 64 * (kGroups + 1 + (has_min ? 1 : 0));
}

// The fifth bits of group G, at bit 4.
template <int G>
[[gnu::always_inline]] inline __m512i high_bits(__m512i high) {
  return G < 4 ? _mm512_slli_epi16(high, 4 - G) : _mm512_srli_epi16(high, G - 4);
}

// The unsigned weights of four k each that share the bytes V of a tile's block: groups V and V + 4.
struct Pair {
  __m512i low, high;
};
template <const Format& F, int V>
[[gnu::always_inline]] inline Pair pair_of(const std::byte* block, __m512i fifth) {
  if constexpr (F.whole_bytes)
    return {bytes_at(block + F.at.q + 64 * V), bytes_at(block + F.at.q + 64 * (V + 4))};
  const __m512i low4 = _mm512_set1_epi8(0x0f), bit4 = _mm512_set1_epi8(0x10);
  __m512i q = bytes_at(block + F.at.q + 64 * V);
  asm("" : "+v"(q));  // one load for both nibbles: half of the blocks straddle cache lines
  const Pair nibbles{_mm512_and_si512(q, low4), _mm512_and_si512(_mm512_srli_epi16(q, 4), low4)};
  if constexpr (F.table) return {iq4_values(nibbles.low), iq4_values(nibbles.high)};
  if constexpr (!F.has_high) return nibbles;
  constexpr int kOr = 0xf8;  // a | (b & c)
  return {_mm512_ternarylogic_epi64(nibbles.low, high_bits<V>(fifth), bit4, kOr),
          _mm512_ternarylogic_epi64(nibbles.high, high_bits<V + 4>(fifth), bit4, kOr)};
}

template <const Format& F>
[[gnu::always_inline]] inline __m512i fifth_bits(const std::byte* block) {
  return F.has_high ? bytes_at(block + F.at.high) : _mm512_setzero_si512();
}

// All of a tile's block, in ascending k.
template <const Format& F>
[[gnu::always_inline]] inline void weights_of(const std::byte* block, __m512i* w) {
  const __m512i fifth = fifth_bits<F>(block);
  const Pair pairs[4] = {pair_of<F, 0>(block, fifth), pair_of<F, 1>(block, fifth),
                         pair_of<F, 2>(block, fifth), pair_of<F, 3>(block, fifth)};
#pragma GCC unroll 8
  for (int v = 0; v < 4; ++v) {
    w[v] = pairs[v].low;
    w[v + 4] = pairs[v].high;
  }
}

template <const Format& F>
[[gnu::always_inline]] inline __m512 add_block(const std::byte* block, int, const quantize::Row& x,
                                               long long b, __m512 acc) {
  __m512i w[kGroups];
  weights_of<F>(block, w);
  const auto* q = reinterpret_cast<const std::byte*>(x.q + b * kBlock);
  __m512i even = _mm512_setzero_si512(), odd = _mm512_setzero_si512();
  if (!F.has_min) even = _mm512_set1_epi32(-(x.sum[b] << F.bias_shift));
#pragma GCC unroll 8
  for (int g = 0; g < kGroups; g += 2) {
    even = _mm512_dpbusd_epi32(even, w[g], words_of(q + 4 * g));
    odd = _mm512_dpbusd_epi32(odd, w[g + 1], words_of(q + 4 * g + 4));
  }
  const __m512 dot = _mm512_cvtepi32_ps(_mm512_add_epi32(even, odd));
  const __m512 scale = _mm512_mul_ps(f16_at(block), _mm512_set1_ps(x.scale[b]));
  acc = _mm512_fmadd_ps(scale, dot, acc);
  if (!F.has_min) return acc;
  const __m512 sum = _mm512_set1_ps(x.scale[b] * static_cast<float>(x.sum[b]));
  return _mm512_fmadd_ps(f16_at(block + F.at.m), sum, acc);
}

#include "kernels/matmul/blocks_body.inc"

// Of 16 blocks: the bias to start an integer sum from, or what multiplies the minimum.
template <bool Min, int BiasShift>
[[gnu::always_inline]] inline __m512i extra_of(__m512 dx, __m512i sum) {
  if (Min) return _mm512_castps_si512(_mm512_mul_ps(dx, _mm512_cvtepi32_ps(sum)));
  return _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sum, BiasShift));
}

template <bool Min, int BiasShift>
void prepare(const Args& a, long long first, long long n, std::byte* extra, std::byte*) {
  const long long n_blocks = a.k / kBlock;
  for (long long r = first; r < first + n; ++r, extra += 4 * n_blocks) {
    const quantize::Row x = quantize::row_at(a.x, a.k, r);
    for (long long b = 0; b < n_blocks; b += 16) {
      const __mmask16 live = mask_of(n_blocks - b);
      const __m512 dx = _mm512_maskz_loadu_ps(live, x.scale + b);
      const __m512i sum = _mm512_maskz_loadu_epi32(live, x.sum + b);
      _mm512_mask_storeu_epi32(extra + 4 * b, live, extra_of<Min, BiasShift>(dx, sum));
    }
  }
}

template <const Format& F>
void expand(const std::byte* tile, const Run& run, std::byte* out, long long out_stride) {
  tile += run.first * F.at.bytes;
  for (long long b = 0; b < run.n; ++b, tile += F.at.bytes, out += out_stride) {
    __m512i w[kGroups];
    weights_of<F>(tile, w);
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) put(out + 64 * g, w[g]);
    put(out + 64 * kGroups, f16_at(tile));
    if (F.has_min) put(out + 64 * (kGroups + 1), f16_at(tile + F.at.m));
  }
}

template <int T, int R, bool Min>
void multiply_expanded(const Product& p) {
  constexpr int kTileBytes = expanded_bytes(Min);
  Sums<T, R, Min> sums(p);
  const std::byte* w = p.w;
  for (long long b = 0; b < p.n_blocks; ++b, w += T * kTileBytes) {
    __m512i four[T];
    __m512 d[T], m[T];
    sums.begin_block();
    sums.fetch_next();
    fetch_next_y<T, R>(p, b);
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) four[t] = _mm512_load_si512(w + t * kTileBytes + 64 * g);
      sums.add(g, four);
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const std::byte* scales = w + t * kTileBytes + 64 * kGroups;
      d[t] = _mm512_load_ps(scales);
      m[t] = Min ? _mm512_load_ps(scales + 64) : d[t];
    }
    sums.end_block(d, m);
  }
  sums.store(p);
}

// Decodes a pair of groups just before it is multiplied. That the tiles' addresses seem to depend
// on the sums so far keeps g++ from decoding all pairs first and spilling them.
template <const Format& F, int T, int R, int V>
[[gnu::always_inline]] inline void add_pair(const std::byte* (&tile)[T], const __m512i (&fifth)[T],
                                            Sums<T, R, F.has_min>& sums) {
  __m512i low[T], high[T];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    asm("" : "+r"(tile[t]), "+v"(sums.sum[t][0]));
    const Pair pair = pair_of<F, V>(tile[t], fifth[t]);
    low[t] = pair.low;
    high[t] = pair.high;
  }
  sums.add(V, low);
  sums.add(V + 4, high);
}

template <const Format& F, int T, int R>
void multiply_packed(const Product& p) {
  Sums<T, R, F.has_min> sums(p);
  tiles16::Ahead ahead = p.ahead;
  const std::byte* tile[T];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) tile[t] = p.w + t * p.n_blocks * F.at.bytes;
  for (long long b = 0; b < p.n_blocks; ++b) {
    __m512i fifth[T];
    __m512 d[T], m[T];
    sums.begin_block();
    ahead.fetch();
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) fifth[t] = fifth_bits<F>(tile[t]);
    add_pair<F, T, R, 0>(tile, fifth, sums);
    add_pair<F, T, R, 1>(tile, fifth, sums);
    add_pair<F, T, R, 2>(tile, fifth, sums);
    add_pair<F, T, R, 3>(tile, fifth, sums);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      d[t] = f16_at(tile[t]);
      m[t] = F.has_min ? f16_at(tile[t] + F.at.m) : d[t];
      tile[t] += F.at.bytes;
    }
    sums.end_block(d, m);
  }
  sums.store(p);
}

using Call = void (*)(const Product&);

template <bool Min>
void multiply(const Product& p, int n_rows, int n_tiles) {
  static constexpr Call kCalls[kMaxTiles][kMaxRows] = {
      {multiply_expanded<1, 1, Min>, multiply_expanded<1, 2, Min>, multiply_expanded<1, 3, Min>,
       multiply_expanded<1, 4, Min>},
      {multiply_expanded<2, 1, Min>, multiply_expanded<2, 2, Min>, multiply_expanded<2, 3, Min>,
       multiply_expanded<2, 4, Min>},
      {multiply_expanded<3, 1, Min>, multiply_expanded<3, 2, Min>, multiply_expanded<3, 3, Min>,
       multiply_expanded<3, 4, Min>}};
  kCalls[n_tiles - 1][n_rows - 1](p);
}

template <const Format& F, int T, int... R>
constexpr std::array<Call, F.packed_rows> packed_calls(std::integer_sequence<int, R...>) {
  return {multiply_packed<F, T, R + 1>...};
}

template <const Format& F, int... T>
constexpr auto packed_table(std::integer_sequence<int, T...>) {
  return std::array{packed_calls<F, T + 1>(std::make_integer_sequence<int, F.packed_rows>())...};
}

template <const Format& F>
void multiply_few(const Product& p, int n_rows, int n_tiles) {
  static constexpr auto kCalls = packed_table<F>(std::make_integer_sequence<int, F.packed_tiles>());
  kCalls[static_cast<size_t>(n_tiles - 1)][static_cast<size_t>(n_rows - 1)](p);
}

template <const Format& F>
constexpr tiles16::TileKernel kernel_for() {
  return {.tile_bytes = [](long long k) { return k / kBlock * F.at.bytes; },
          .unit_blocks = 1,
          .wide_q_bytes = 0,
          .extra_bytes = 4,
          .expanded_bytes = expanded_bytes(F.has_min),
          .max_rows = kMaxRows,
          .max_tiles = kMaxTiles,
          .chunk_bytes = kChunkBytes,
          .panel_bytes = kPanelBytes,
          .packed_rows = kPackedRows,
          .max_packed_rows = F.packed_rows,
          .max_packed_tiles = F.packed_tiles,
          .one_row = one_row<F>,
          .prepare = prepare<F.has_min, F.bias_shift>,
          .expand = expand<F>,
          .multiply = multiply<F.has_min>,
          .multiply_packed = multiply_few<F>};
}

constexpr tiles16::TypedKernel kKernels[] = {
    {DType::q8_0, kernel_for<kQ8_0>()}, {DType::q4_0, kernel_for<kQ4_0>()},
    {DType::q4_1, kernel_for<kQ4_1>()}, {DType::q5_0, kernel_for<kQ5_0>()},
    {DType::q5_1, kernel_for<kQ5_1>()}, {DType::iq4_nl, kernel_for<kIq4Nl>()}};

}  // namespace

const tiles16::TileKernel& kernel_of(DType type) {
  return tiles16::kernel_in(kKernels, type);
}

size_t workspace_bytes(const Args& a, int n_lanes) {
  return tiles16::workspace_bytes(a, n_lanes, kernel_of(a.w_type));
}

Status run(const Args& a, Exec& exec) {
  return tiles16::run(a, exec, kernel_of(a.w_type));
}

}  // namespace millrace::matmul::avx512_vnni
MILLRACE_TARGET_END
