#include <immintrin.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/isa.h"
#include "kernels/lanes_avx2.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul/tiles_avx2.h"
#include "kernels/quantize/row.h"

MILLRACE_TARGET_AVX2
namespace millrace::matmul::avx2 {
namespace {

using lanes::avx2::Float;
using lanes::avx2::kVectors16;
using lanes::avx2::kWidth;
using lanes::avx2::splat;
using quantize::kBlock;
using tiles16::At;
using tiles16::BlockLayout;
using tiles16::kOutputs;
using tiles16::Product;
using tiles16::Run;

// Weights of 4 and 5 bits are multiplied as unsigned bytes by vpmaddubsw, and `depth` of its
// results are summed in 16 bits before they widen: 8 * 2 * 15 * 127 and 4 * 2 * 31 * 127 fit. A
// signed format's bias is taken off the integer sum. Q8_0 and IQ4_NL do not fit and are multiplied
// as int16, signed.
struct Format {
  BlockLayout at;
  bool has_min = false, has_high = false;
  bool is_signed = false;
  bool table = false;  // a code is an index of kIq4Values
  int bias_shift = 0;  // where there is no minimum
  int depth = 8;
};
constexpr Format kQ8_0{.at = tiles16::kQ8_0, .is_signed = true};
constexpr Format kQ4_0{.at = tiles16::kQ4_0, .bias_shift = 3};
constexpr Format kQ4_1{.at = tiles16::kQ4_1, .has_min = true};
constexpr Format kQ5_0{.at = tiles16::kQ5_0, .has_high = true, .bias_shift = 4, .depth = 4};
constexpr Format kQ5_1{.at = tiles16::kQ5_1, .has_min = true, .has_high = true, .depth = 4};
constexpr Format kIq4Nl{.at = tiles16::kIq4Nl, .is_signed = true, .table = true};

// An expanded block of a tile: the weights, f32 d[16], f32 m[16] where there is a minimum.
constexpr int kByteWeights = 64 * kGroups;
constexpr int kWideWeights = 128 * kGroups;

// The fifth bits of group G, at bit 4.
template <int G>
[[gnu::always_inline]] inline __m256i fifth_bits(__m256i high) {
  const __m256i at4 = G < 4 ? _mm256_slli_epi16(high, 4 - G) : _mm256_srli_epi16(high, G - 4);
  return _mm256_and_si256(at4, _mm256_set1_epi8(0x10));
}

// Half a tile's unsigned weights of groups V and V + 4, which share bytes.
struct Pair {
  __m256i low, high;
};
template <const Format& F, int V>
[[gnu::always_inline]] inline Pair pair_of(const std::byte* block, int half) {
  const __m256i low4 = _mm256_set1_epi8(0x0f);
  const __m256i q = bytes_at(block + F.at.q + 64 * V + 32 * half);
  const Pair nibbles{_mm256_and_si256(q, low4), _mm256_and_si256(_mm256_srli_epi16(q, 4), low4)};
  if constexpr (!F.has_high) return nibbles;
  const __m256i high = bytes_at(block + F.at.high + 32 * half);
  return {_mm256_or_si256(nibbles.low, fifth_bits<V>(high)),
          _mm256_or_si256(nibbles.high, fifth_bits<V + 4>(high))};
}

// Half a tile's signed weights of group g.
template <const Format& F>
[[gnu::always_inline]] inline __m256i signed_at(const std::byte* block, int half, int g) {
  const std::byte* q = block + F.at.q + 32 * half;
  if constexpr (!F.table) return _mm256_xor_si256(bytes_at(q + 64 * g), _mm256_set1_epi8(-128));
  const __m256i both = bytes_at(q + 64 * (g % 4));
  return iq4_values(g < 4 ? low_nibbles(both) : high_nibbles(both));
}

// The end of a block for 8 outputs of a row.
template <const Format& F>
[[gnu::always_inline]] inline __m256 add_dot(const std::byte* block, int half, __m256i dot,
                                             const quantize::Row& x, long long b, __m256 acc) {
  const __m256 scale = _mm256_mul_ps(f16_at(block + 16 * half), _mm256_set1_ps(x.scale[b]));
  acc = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(dot), acc);
  if (!F.has_min) return acc;
  const __m256 sum = _mm256_set1_ps(x.scale[b] * static_cast<float>(x.sum[b]));
  return _mm256_fmadd_ps(f16_at(block + F.at.m + 16 * half), sum, acc);
}

// vpmaddubsw of groups V and V + 4: they are summed separately, each at most 4 deep.
template <const Format& F, int V>
[[gnu::always_inline]] inline void add_pair(const std::byte* block, int half, const std::byte* q,
                                            __m256i (&sum)[2]) {
  const Pair w = pair_of<F, V>(block, half);
  const __m256i low = _mm256_maddubs_epi16(w.low, words_of(q + 4 * V));
  const __m256i high = _mm256_maddubs_epi16(w.high, words_of(q + 4 * (V + 4)));
  sum[0] = V == 0 ? low : _mm256_add_epi16(sum[0], low);
  sum[1] = V == 0 ? high : _mm256_add_epi16(sum[1], high);
}

template <const Format& F>
[[gnu::always_inline]] inline __m256i dot_of(const std::byte* block, int half, const std::byte* q,
                                             int xsum) {
  __m256i sum[2];
  add_pair<F, 0>(block, half, q, sum);
  add_pair<F, 1>(block, half, q, sum);
  add_pair<F, 2>(block, half, q, sum);
  add_pair<F, 3>(block, half, q, sum);
  const __m256i one = _mm256_set1_epi16(1);
  const __m256i dot =
      _mm256_add_epi32(_mm256_madd_epi16(sum[0], one), _mm256_madd_epi16(sum[1], one));
  if (F.has_min) return dot;
  return _mm256_sub_epi32(dot, _mm256_set1_epi32(xsum << F.bias_shift));
}

template <const Format& F>
[[gnu::always_inline]] inline __m256i dot_of_signed(const std::byte* block, int half,
                                                    const std::byte* q) {
  __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
#pragma GCC unroll 8
  for (int g = 0; g < kGroups; ++g)
    sum[g % 2] = add_signed(signed_at<F>(block, half, g), words_of(q + 4 * g), sum[g % 2]);
  return _mm256_add_epi32(sum[0], sum[1]);
}

template <const Format& F>
[[gnu::always_inline]] inline __m256 add_block(const std::byte* block, int half,
                                               const quantize::Row& x, long long b, __m256 acc) {
  const auto* q = reinterpret_cast<const std::byte*>(x.q + b * kBlock);
  __m256i dot;
  if constexpr (F.is_signed)
    dot = dot_of_signed<F>(block, half, q);
  else
    dot = dot_of<F>(block, half, q, x.sum[b]);
  return add_dot<F>(block, half, dot, x, b, acc);
}

#include "kernels/matmul/blocks_body.inc"

template <bool Min, int BiasShift>
void prepare(const Args& a, long long first, long long n, std::byte* extra, std::byte*) {
  const long long n_blocks = a.k / kBlock;
  for (long long r = first; r < first + n; ++r) {
    const quantize::Row x = quantize::row_at(a.x, a.k, r);
    for (long long b = 0; b < n_blocks; ++b, extra += 4) {
      const float min = x.scale[b] * static_cast<float>(x.sum[b]);
      const int bias = -(x.sum[b] << BiasShift);
      if (Min)
        std::memcpy(extra, &min, 4);
      else
        std::memcpy(extra, &bias, 4);
    }
  }
}

// A row's block as 8 words of even pairs, then 8 of odd ones.
void prepare_words(const Args& a, long long first, long long n, std::byte*, std::byte* wide) {
  for (long long r = first; r < first + n; ++r) {
    const auto* q = reinterpret_cast<const std::byte*>(quantize::row_at(a.x, a.k, r).q);
    for (long long i = 0; i < a.k; i += kBlock, wide += 2 * kBlock) {
      const Wide x = widen(bytes_at(q + i));
      put(wide, x.even);
      put(wide + kBlock, x.odd);
    }
  }
}

[[gnu::always_inline]] inline void expand_f16(const std::byte* from, std::byte* to) {
  _mm256_store_ps(reinterpret_cast<float*>(to), f16_at(from));
  _mm256_store_ps(reinterpret_cast<float*>(to) + kHalf, f16_at(from + 16));
}

template <const Format& F, int V>
[[gnu::always_inline]] inline void expand_pair(const std::byte* block, std::byte* out) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const Pair w = pair_of<F, V>(block, half);
    put(out + 64 * V + 32 * half, w.low);
    put(out + 64 * (V + 4) + 32 * half, w.high);
  }
}

// Weights [group][16 outputs][4].
template <const Format& F>
void expand(const std::byte* tile, const Run& run, std::byte* out, long long out_stride) {
  tile += run.first * F.at.bytes;
  for (long long b = 0; b < run.n; ++b, tile += F.at.bytes, out += out_stride) {
    expand_pair<F, 0>(tile, out);
    expand_pair<F, 1>(tile, out);
    expand_pair<F, 2>(tile, out);
    expand_pair<F, 3>(tile, out);
    expand_f16(tile, out + kByteWeights);
    if (F.has_min) expand_f16(tile + F.at.m, out + kByteWeights + 64);
  }
}

// Weights [pair of k][16 outputs][2], in the order of a wide row's words.
template <const Format& F>
void expand_words(const std::byte* tile, const Run& run, std::byte* out, long long out_stride) {
  tile += run.first * F.at.bytes;
  for (long long b = 0; b < run.n; ++b, tile += F.at.bytes, out += out_stride) {
#pragma GCC unroll 16
    for (int i = 0; i < 2 * kGroups; ++i) {  // half a group
      const Wide w = widen(signed_at<F>(tile, i % 2, i / 2));
      put(out + 32 * i, w.even);
      put(out + 32 * i + kWideWeights / 2, w.odd);
    }
    expand_f16(tile, out + kWideWeights);
  }
}

// The running sum stays where it is: left alone, g++ 12 regroups a chain of integer additions,
// which keeps all its products alive at once and spills most of them.
[[gnu::always_inline]] inline __m256i in_order(__m256i sum) {
  asm("" : "+x"(sum));
  return sum;
}

// How a kind of weight is multiplied: bytes, `Depth` products deep in 16 bits, or int16. A tile's
// two halves share a row's load; as many rows as leave two registers for the weights, one for the
// row and one for a product.
template <bool HasMin, int Depth>
struct Bytes {
  static constexpr bool kMin = HasMin, kExtra = !HasMin;
  static constexpr int kRowBytes = kBlock, kWeights = kByteWeights;
  static constexpr int kTileBytes = kByteWeights + (HasMin ? 128 : 64);
  static constexpr int kMaxRows = Depth == kGroups ? 6 : 3;

  template <int R>
  [[gnu::always_inline]] static void dot(const std::byte* w, const At<R>& q, __m256i (&sum)[R][2]) {
    __m256i narrow[R][2];
    const __m256i one = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) {
      const __m256i four[2] = {bytes_at(w + 64 * g), bytes_at(w + 64 * g + 32)};
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256i x = words_of(q[r] + 4 * g);
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
          const __m256i product = _mm256_maddubs_epi16(four[h], x);
          narrow[r][h] =
              g % Depth == 0 ? product : in_order(_mm256_add_epi16(narrow[r][h], product));
          if (g % Depth != Depth - 1) continue;
          const __m256i widened = _mm256_madd_epi16(narrow[r][h], one);
          sum[r][h] = g < Depth ? widened : _mm256_add_epi32(sum[r][h], widened);
        }
      }
    }
  }
};

struct Words {
  static constexpr bool kMin = false, kExtra = false;
  static constexpr int kRowBytes = 2 * kBlock, kWeights = kWideWeights;
  static constexpr int kTileBytes = kWideWeights + 64;
  static constexpr int kMaxRows = 6;

  template <int R>
  [[gnu::always_inline]] static void dot(const std::byte* w, const At<R>& q, __m256i (&sum)[R][2]) {
#pragma GCC unroll 16
    for (int i = 0; i < 2 * kGroups; ++i) {
      const __m256i two[2] = {bytes_at(w + 64 * i), bytes_at(w + 64 * i + 32)};
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256i x = words_of(q[r] + 4 * i);
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
          const __m256i product = _mm256_madd_epi16(two[h], x);
          sum[r][h] = i == 0 ? product : in_order(_mm256_add_epi32(sum[r][h], product));
        }
      }
    }
  }
};

// A tile times R rows. The f32 sums wait in memory while a block is multiplied, whose integer sums
// take the registers.
template <class Kind, int R>
void multiply_rows(const Product& p) {
  At<R> q(p.x.q, p.x.q_stride), dx(p.x.dx, p.x.dx_stride), extra(p.x.extra, p.x.extra_stride);
  __m256 acc[R][2];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    float* y = p.y + r * p.y_stride;
    __builtin_prefetch(y, 1);  // a store that waits for its line holds up those behind it
    acc[r][0] = acc[r][1] = _mm256_setzero_ps();
    if (p.first) continue;
    acc[r][0] = _mm256_maskload_ps(y, mask_of(p.n_live));
    acc[r][1] = _mm256_maskload_ps(y + kHalf, mask_of(p.n_live - kHalf));
  }
  const std::byte* w = p.w;
  for (long long b = 0; b < p.n_blocks; ++b, w += Kind::kTileBytes) {
    asm("" : "+m"(acc));  // so that they wait there
    __m256i sum[R][2];
    Kind::dot(w, q, sum);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        const auto* scales = reinterpret_cast<const float*>(w + Kind::kWeights + 32 * h);
        if (Kind::kExtra) sum[r][h] = _mm256_add_epi32(sum[r][h], words_of(extra[r]));
        const __m256 scale = _mm256_mul_ps(_mm256_load_ps(scales), floats_of(dx[r]));
        acc[r][h] = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(sum[r][h]), acc[r][h]);
        if (Kind::kMin)
          acc[r][h] =
              _mm256_fmadd_ps(_mm256_load_ps(scales + kOutputs), floats_of(extra[r]), acc[r][h]);
      }
    q.advance(Kind::kRowBytes);
    dx.advance(4);
    extra.advance(4);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    float* y = p.y + r * p.y_stride;
    store(y, p.n_live, acc[r][0]);
    if (p.n_live > kHalf) store(y + kHalf, p.n_live - kHalf, acc[r][1]);
  }
}

// Half a packed tile of signed weights times R rows, widened as it passes: for a few rows cheaper
// than writing it down first.
template <const Format& F, int R>
[[gnu::always_inline]] inline void multiply_packed_half(const Product& p, int half) {
  At<R> q(p.x.q, p.x.q_stride), dx(p.x.dx, p.x.dx_stride);
  __m256 acc[R] = {};
  const std::byte* block = p.w;
  tiles16::Ahead ahead = p.ahead;
  for (long long b = 0; b < p.n_blocks; ++b, block += F.at.bytes) {
    asm("" : "+m"(acc));  // they wait in memory
    if (half == 0) ahead.fetch();
    __m256i sum[R];
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) {
      const Wide w = widen(signed_at<F>(block, half, g));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256i even = _mm256_madd_epi16(w.even, words_of(q[r] + 4 * g));
        sum[r] = g == 0 ? even : in_order(_mm256_add_epi32(sum[r], even));
        const __m256i odd = _mm256_madd_epi16(w.odd, words_of(q[r] + kBlock + 4 * g));
        sum[r] = in_order(_mm256_add_epi32(sum[r], odd));
      }
    }
    const __m256 d = f16_at(block + 16 * half);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256 scale = _mm256_mul_ps(d, floats_of(dx[r]));
      acc[r] = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(sum[r]), acc[r]);
    }
    q.advance(Words::kRowBytes);
    dx.advance(4);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
    store(p.y + r * p.y_stride + kHalf * half, p.n_live - kHalf * half, acc[r]);
}

template <const Format& F, int R>
void multiply_packed(const Product& p) {
  multiply_packed_half<F, R>(p, 0);
  if (p.n_live > kHalf) multiply_packed_half<F, R>(p, 1);
}

constexpr int kFewRows = 8;  // of one multiply_packed

template <class Kind, int... R>
void multiply_in(const Product& p, int n_rows, std::integer_sequence<int, R...>) {
  using Call = void (*)(const Product&);
  static constexpr Call kCalls[] = {multiply_rows<Kind, R + 1>...};
  kCalls[n_rows - 1](p);
}

template <class Kind>
void multiply(const Product& p, int n_rows, int) {
  multiply_in<Kind>(p, n_rows, std::make_integer_sequence<int, Kind::kMaxRows>());
}

template <const Format& F, class Kind>
constexpr tiles16::TileKernel kernel_for() {
  return {.tile_bytes = [](long long k) { return k / kBlock * F.at.bytes; },
          .unit_blocks = 1,
          .wide_q_bytes = Kind::kRowBytes == kBlock ? 0 : Kind::kRowBytes,
          .extra_bytes = Kind::kMin || Kind::kExtra ? 4 : 0,
          .expanded_bytes = Kind::kTileBytes,
          .max_rows = Kind::kMaxRows,
          .max_tiles = 1,
          .chunk_bytes = 28 << 10,
          .panel_bytes = 512 << 10,
          .packed_rows = 0,
          .max_packed_rows = 0,
          .max_packed_tiles = 0,
          .one_row = one_row<F>,
          .prepare = prepare<F.has_min, F.bias_shift>,
          .expand = expand<F>,
          .multiply = multiply<Kind>,
          .multiply_packed = nullptr};
}

template <const Format& F, int... R>
void multiply_few_in(const Product& p, int n_rows, std::integer_sequence<int, R...>) {
  using Call = void (*)(const Product&);
  static constexpr Call kCalls[] = {multiply_packed<F, R + 1>...};
  kCalls[n_rows - 1](p);
}

template <const Format& F>
void multiply_few(const Product& p, int n_rows, int) {
  multiply_few_in<F>(p, n_rows, std::make_integer_sequence<int, kFewRows>());
}

template <const Format& F>
constexpr tiles16::TileKernel signed_kernel() {
  tiles16::TileKernel kernel = kernel_for<F, Words>();
  kernel.packed_rows = 16;
  kernel.max_packed_rows = kFewRows;
  kernel.max_packed_tiles = 1;
  kernel.multiply_packed = multiply_few<F>;
  kernel.prepare = prepare_words;
  kernel.expand = expand_words<F>;
  return kernel;
}

constexpr tiles16::TypedKernel kKernels[] = {
    {DType::q8_0, signed_kernel<kQ8_0>()},
    {DType::q4_0, kernel_for<kQ4_0, Bytes<false, kQ4_0.depth>>()},
    {DType::q4_1, kernel_for<kQ4_1, Bytes<true, kQ4_1.depth>>()},
    {DType::q5_0, kernel_for<kQ5_0, Bytes<false, kQ5_0.depth>>()},
    {DType::q5_1, kernel_for<kQ5_1, Bytes<true, kQ5_1.depth>>()},
    {DType::iq4_nl, signed_kernel<kIq4Nl>()}};

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

}  // namespace millrace::matmul::avx2
MILLRACE_TARGET_END
