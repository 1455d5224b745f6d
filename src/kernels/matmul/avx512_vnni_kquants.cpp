#include <array>
#include <utility>

#include "base/isa.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul/pack_kquants.h"
#include "kernels/matmul/tiles_avx512.h"
#include "kernels/quantize/row.h"

// A format here is a struct that knows its codes and: what of x a superblock wants beside its q
// (Side), a superblock's scales (Scales), one block of one row, and one block expanded for many.
MILLRACE_TARGET_AVX512_VNNI
namespace millrace::matmul::avx512_vnni {
namespace {

using quantize::kBlock;
using tiles16::At;
using tiles16::kOutputs;
using tiles16::Product;
using tiles16::Run;

constexpr int kBlocks = kSuper / kBlock;  // of a superblock
constexpr int kCodeBytes = 64 * kGroups;  // of a tile's block, expanded

[[gnu::always_inline]] inline __m512i four_at(const signed char* q) {
  return _mm512_set1_epi32(load<int>(reinterpret_cast<const std::byte*>(q)));
}
[[gnu::always_inline]] inline __m512i low_nibbles(__m512i line) {
  return _mm512_and_si512(line, _mm512_set1_epi8(15));
}
[[gnu::always_inline]] inline __m512i high_nibbles(__m512i line) {
  return low_nibbles(_mm512_srli_epi16(line, 4));
}
// nibbles | (bits & mask)
[[gnu::always_inline]] inline __m512i join(__m512i nibbles, __m512i bits, __m512i mask) {
  return _mm512_ternarylogic_epi32(nibbles, bits, mask, 0xf8);
}
// Shifts inside 16 bits; what crosses into the neighbouring byte is masked away by join.
[[gnu::always_inline]] inline __m512i shifted(__m512i v, int left) {
  return left >= 0 ? _mm512_slli_epi16(v, static_cast<unsigned>(left))
                   : _mm512_srli_epi16(v, static_cast<unsigned>(-left));
}

// Vector v (0 to 7) of a block.
template <DType kType>
[[gnu::always_inline]] inline __m512i vector_at(const std::byte* block, int v) {
  const __m512i line = bytes_at(block + 64 * (v % 4));
  const __m512i nibbles = v < 4 ? low_nibbles(line) : high_nibbles(line);
  if constexpr (kType == DType::q4_k) return nibbles;
  if constexpr (kType == DType::iq4_xs) return iq4_values(nibbles);
  if constexpr (kType == DType::q5_k)
    return join(nibbles, shifted(bytes_at(block + kNibbleBytes), 4 - v), _mm512_set1_epi8(16));
  const __m512i bits = bytes_at(block + kNibbleBytes + 64 * (v / 4));
  return join(nibbles, shifted(bits, 4 - 2 * (v % 4)), _mm512_set1_epi8(0x30));
}

// Vectors 4 * half to 4 * half + 3 of a block times one row.
template <DType kType>
[[gnu::always_inline]] inline __m512i dot_half(const std::byte* block, int half,
                                               const signed char* q, __m512i sum) {
#pragma GCC unroll 4
  for (int v = 4 * half; v < 4 * half + 4; ++v)
    sum = _mm512_dpbusd_epi32(sum, vector_at<kType>(block, v), four_at(q + 4 * v));
  return sum;
}

template <DType kType>
[[gnu::always_inline]] inline void expand_codes(const std::byte* block, std::byte* out) {
#pragma GCC unroll 8
  for (int v = 0; v < kGroups; ++v) _mm512_store_si512(out + 64 * v, vector_at<kType>(block, v));
}

template <int kBytes>
[[gnu::always_inline]] inline void fetch(const std::byte* at) {
#pragma GCC unroll 8
  for (int i = 0; i < kBytes; i += 64) _mm_prefetch(at + kAhead + i, _MM_HINT_T0);
}

template <DType kType>
[[gnu::always_inline]] inline const std::byte* super_at(const std::byte* tile, long long s,
                                                        long long k) {
  return tile + kquant_head_bytes(kType, k) + s * kquant_super_bytes(kType);
}

template <DType kWeight>
struct WithMin {
  static constexpr DType kType = kWeight;
  static constexpr bool kMin = true;

  // dx * float(xsum) of each block.
  struct Side {
    alignas(32) float dx_sum[kBlocks];

    [[gnu::always_inline]] Side(const quantize::Row& x, long long b) {
      const __m256i sum = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x.sum + b));
      const __m256 dx = _mm256_loadu_ps(x.scale + b);
      _mm256_store_ps(dx_sum, _mm256_mul_ps(dx, _mm256_cvtepi32_ps(sum)));
    }
  };

  // d * scale and dmin * minimum of the eight blocks.
  struct Scales {
    __m512 dw[kBlocks], mw[kBlocks];

    [[gnu::always_inline]] void load(const std::byte*, const std::byte* super, long long) {
      const __m512 d = f16_at(super), dmin = f16_at(super + 32);
      const std::byte* words = super + 64;
      const __m512i w0 = bytes_at(words), w1 = bytes_at(words + 64), w2 = bytes_at(words + 128);
      const __m512i six = _mm512_set1_epi8(0x3f), high = _mm512_set1_epi8(0x30);
      put(dw, d, _mm512_and_si512(w0, six));
      put(dw + 4, d, join(low_nibbles(w2), _mm512_srli_epi16(w0, 2), high));
      put(mw, dmin, _mm512_and_si512(w1, six));
      put(mw + 4, dmin, join(high_nibbles(w2), _mm512_srli_epi16(w1, 2), high));
    }
    [[gnu::always_inline]] static void put(__m512* out, __m512 d, __m512i bytes) {
#pragma GCC unroll 4
      for (unsigned i = 0; i < 4; ++i) {
        const __m512i byte =
            _mm512_and_si512(_mm512_srli_epi32(bytes, 8 * i), _mm512_set1_epi32(255));
        out[i] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(byte));
      }
    }
    // -(dmin * m)
    [[gnu::always_inline]] __m512 min(int b) const {
      return _mm512_xor_ps(mw[b], _mm512_set1_ps(-0.0f));
    }
  };

  [[gnu::always_inline]] static __m512 add_block(const std::byte* block, const Scales& scales,
                                                 int b, const signed char* q, float dx,
                                                 const Side& side, __m512 acc) {
    const __m512i zero = _mm512_setzero_si512();
    const __m512i dot =
        _mm512_add_epi32(dot_half<kType>(block, 0, q, zero), dot_half<kType>(block, 1, q, zero));
    const __m512 dwx = _mm512_mul_ps(scales.dw[b], _mm512_set1_ps(dx));
    acc = _mm512_fmadd_ps(dwx, _mm512_cvtepi32_ps(dot), acc);
    return _mm512_fnmadd_ps(scales.mw[b], _mm512_set1_ps(side.dx_sum[b]), acc);
  }

  // As Q4_1 is expanded.
  [[gnu::always_inline]] static void expand_block(const std::byte* block, const Scales& scales,
                                                  int b, std::byte* out) {
    expand_codes<kType>(block, out);
    _mm512_store_ps(out + kCodeBytes, scales.dw[b]);
    _mm512_store_ps(out + kCodeBytes + 64, scales.min(b));
  }
};

// The table's values are taken plus 128: the dots start at -128 * sum of x.
struct Iq4Xs {
  static constexpr DType kType = DType::iq4_xs;
  static constexpr bool kMin = false;

  struct Side {
    alignas(32) int bias[kBlocks];

    [[gnu::always_inline]] Side(const quantize::Row& x, long long b) {
      for (int i = 0; i < kBlocks; ++i) bias[i] = -128 * x.sum[b + i];
    }
  };

  // d * (scale - 32) of the eight blocks.
  struct Scales {
    __m512 dw[kBlocks];

    [[gnu::always_inline]] void load(const std::byte*, const std::byte* super, long long) {
      const __m512 d = f16_at(super);
      const auto* high_at = reinterpret_cast<const __m256i*>(super + 32);
      const __m512i high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(high_at)), 4);
      const __m512i low = bytes_at(super + 64);
#pragma GCC unroll 8
      for (unsigned b = 0; b < kBlocks; ++b) {
        const __m512i four = _mm512_and_si512(_mm512_srli_epi32(low, 4 * b), _mm512_set1_epi32(15));
        const __m512i six = join(four, _mm512_srli_epi32(high, 2 * b), _mm512_set1_epi32(0x30));
        const __m512i scale = _mm512_sub_epi32(six, _mm512_set1_epi32(32));
        dw[b] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(scale));
      }
    }
    [[gnu::always_inline]] __m512 min(int b) const {
      return dw[b];
    }  // there is none
  };

  [[gnu::always_inline]] static __m512 add_block(const std::byte* block, const Scales& scales,
                                                 int b, const signed char* q, float dx,
                                                 const Side& side, __m512 acc) {
    const __m512i bias = _mm512_set1_epi32(side.bias[b]), zero = _mm512_setzero_si512();
    const __m512i dot =
        _mm512_add_epi32(dot_half<kType>(block, 0, q, bias), dot_half<kType>(block, 1, q, zero));
    const __m512 dwx = _mm512_mul_ps(scales.dw[b], _mm512_set1_ps(dx));
    return _mm512_fmadd_ps(dwx, _mm512_cvtepi32_ps(dot), acc);
  }

  // As IQ4_NL is expanded.
  [[gnu::always_inline]] static void expand_block(const std::byte* block, const Scales& scales,
                                                  int b, std::byte* out) {
    expand_codes<kType>(block, out);
    _mm512_store_ps(out + kCodeBytes, scales.dw[b]);
  }
};

// A few rows: a vector is decoded just before it is multiplied. That the tiles' addresses seem to
// depend on the sums so far keeps g++ from decoding all vectors first and spilling them.
template <class Format, int T, int R>
void multiply_packed(const Product& p) {
  constexpr DType kType = Format::kType;
  constexpr int kHeaderBytes = kquant_header_bytes(kType), kBlockBytes = kquant_block_bytes(kType);
  Sums<T, R, Format::kMin> sums(p);
  const std::byte* tile[T];
#pragma GCC unroll 2
  for (int t = 0; t < T; ++t) tile[t] = p.w + t * p.n_blocks / kBlocks * kquant_super_bytes(kType);
  for (long long s = 0; s < p.n_blocks / kBlocks; ++s) {
    typename Format::Scales scales[T];
#pragma GCC unroll 2
    for (int t = 0; t < T; ++t, tile[t - 1] += kHeaderBytes) {
      fetch<kHeaderBytes>(tile[t]);
      scales[t].load(nullptr, tile[t], s);
    }
    for (int b = 0; b < kBlocks; ++b) {
      sums.begin_block();
#pragma GCC unroll 8
      for (int v = 0; v < kGroups; ++v) {
        __m512i w[T];
#pragma GCC unroll 2
        for (int t = 0; t < T; ++t) {
          asm("" : "+r"(tile[t]), "+v"(sums.sum[t][0]));
          w[t] = vector_at<kType>(tile[t], v);
        }
        sums.add(v, w);
      }
      __m512 d[T], m[T];
#pragma GCC unroll 2
      for (int t = 0; t < T; ++t) {
        fetch<kBlockBytes>(tile[t]);
        tile[t] += kBlockBytes;
        d[t] = scales[t].dw[b];
        m[t] = scales[t].min(b);
      }
      sums.end_block(d, m);
    }
  }
  sums.store(p);
}

constexpr int kFewRows = 8, kFewTiles = 2;

template <class Format, int T, int... R>
constexpr auto packed_calls(std::integer_sequence<int, R...>) {
  using Call = void (*)(const Product&);
  return std::array<Call, sizeof...(R)>{multiply_packed<Format, T, R + 1>...};
}

template <class Format>
void multiply_few(const Product& p, int n_rows, int n_tiles) {
  constexpr auto kRows = std::make_integer_sequence<int, kFewRows>();
  static constexpr std::array kCalls = {packed_calls<Format, 1>(kRows),
                                        packed_calls<Format, 2>(kRows)};
  kCalls[static_cast<size_t>(n_tiles - 1)][static_cast<size_t>(n_rows - 1)](p);
}

// The dots start at -32 * sum of x, which takes the bias off. |scale * dot| summed over both halves
// is at most 128 * 32 * 127 * 32 < 2^24, so f32 holds the block's integer exactly.
struct Q6K {
  static constexpr DType kType = DType::q6_k;

  // -32 * the sum of each 16 of x.
  struct Side {
    alignas(64) int bias[2 * kBlocks];

    [[gnu::always_inline]] Side(const quantize::Row& x, long long b) {
      for (int i = 0; i < 2 * kBlocks; ++i) bias[i] = bias_of(x.q + b * kBlock + 16 * i);
    }
  };
  [[gnu::always_inline]] static int bias_of(const signed char* q) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
    const __m128i four = _mm_dpbusd_epi32(_mm_setzero_si128(), _mm_set1_epi8(1), x);
    const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    return -32 * (_mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 1));
  }

  [[gnu::always_inline]] static __m512 scale_at(const std::byte* super, int b, int half) {
    const auto* at = reinterpret_cast<const __m128i*>(super + 32 * b + 16 * half);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_load_si128(at)));
  }
  struct Scales {
    const std::byte* super;
    __m512 d;

    [[gnu::always_inline]] void load(const std::byte* tile, const std::byte* at, long long s) {
      super = at;
      d = f16_at(tile + 32 * s);
    }
  };
  [[gnu::always_inline]] static __m512 scaled_half(const std::byte* block, const Scales& scales,
                                                   int b, int half, const signed char* q,
                                                   const Side& side) {
    const __m512i bias = _mm512_set1_epi32(side.bias[2 * b + half]);
    const __m512 dot = _mm512_cvtepi32_ps(dot_half<kType>(block, half, q, bias));
    return _mm512_mul_ps(scale_at(scales.super, b, half), dot);
  }
  [[gnu::always_inline]] static __m512 add_block(const std::byte* block, const Scales& scales,
                                                 int b, const signed char* q, float dx,
                                                 const Side& side, __m512 acc) {
    const __m512 sum = _mm512_add_ps(scaled_half(block, scales, b, 0, q, side),
                                     scaled_half(block, scales, b, 1, q, side));
    return _mm512_fmadd_ps(_mm512_mul_ps(scales.d, _mm512_set1_ps(dx)), sum, acc);
  }

  // Codes, then the two halves' scales and d, in f32.
  static constexpr int kExpandedBytes = kCodeBytes + 3 * 64;
  [[gnu::always_inline]] static void expand_block(const std::byte* block, const Scales& scales,
                                                  int b, std::byte* out) {
    expand_codes<kType>(block, out);
    _mm512_store_ps(out + kCodeBytes, scale_at(scales.super, b, 0));
    _mm512_store_ps(out + kCodeBytes + 64, scale_at(scales.super, b, 1));
    _mm512_store_ps(out + kCodeBytes + 128, scales.d);
  }

  static void prepare(const Args& a, long long first, long long n, std::byte* extra, std::byte*) {
    for (long long r = first; r < first + n; ++r) {
      const quantize::Row x = quantize::row_at(a.x, a.k, r);
      for (long long i = 0; i < a.k; i += 16, extra += 4) {
        const int bias = bias_of(x.q + i);
        std::memcpy(extra, &bias, 4);
      }
    }
  }
};

// T tiles times R rows in registers: T * R f32 sums, integer sums and scaled halves.
template <int T, int R>
struct SixSums {
  At<R> q, dx, bias;
  __m512 acc[T][R], sum[T][R];

  [[gnu::always_inline]] explicit SixSums(const Product& p)
      : q(p.x.q, p.x.q_stride), dx(p.x.dx, p.x.dx_stride), bias(p.x.extra, p.x.extra_stride) {
#pragma GCC unroll 2
    for (int t = 0; t < T; ++t) {
      const __mmask16 live = p.first ? 0 : mask_of(p.n_live - kOutputs * t);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r)
        acc[t][r] = _mm512_maskz_loadu_ps(live, p.y + r * p.y_stride + kOutputs * t);
    }
  }

  [[gnu::always_inline]] void add_half(const std::byte* w, int half) {
    __m512i dot[T][R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int t = 0; t < T; ++t) dot[t][r] = _mm512_set1_epi32(load<int>(bias[r] + 4 * half));
#pragma GCC unroll 4
    for (int g = 4 * half; g < 4 * half + 4; ++g)
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        __m512i four = _mm512_set1_epi32(load<int>(q[r] + 4 * g));
        asm("" : "+v"(four));  // one load for all tiles
#pragma GCC unroll 2
        for (int t = 0; t < T; ++t)
          dot[t][r] =
              _mm512_dpbusd_epi32(dot[t][r], bytes_at(w + t * Q6K::kExpandedBytes + 64 * g), four);
      }
#pragma GCC unroll 2
    for (int t = 0; t < T; ++t) {
      const __m512 scale = _mm512_load_ps(w + t * Q6K::kExpandedBytes + kCodeBytes + 64 * half);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m512 scaled = _mm512_cvtepi32_ps(dot[t][r]);
        sum[t][r] =
            half == 0 ? _mm512_mul_ps(scale, scaled) : _mm512_fmadd_ps(scale, scaled, sum[t][r]);
      }
    }
  }

  [[gnu::always_inline]] void end_block(const std::byte* w) {
#pragma GCC unroll 2
    for (int t = 0; t < T; ++t) {
      const __m512 d = _mm512_load_ps(w + t * Q6K::kExpandedBytes + kCodeBytes + 128);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(load<float>(dx[r])));
        acc[t][r] = _mm512_fmadd_ps(scale, sum[t][r], acc[t][r]);
      }
    }
    q.advance(kBlock);
    dx.advance(4);
    bias.advance(8);
  }
};

template <int T, int R>
void multiply_six(const Product& p) {
  SixSums<T, R> sums(p);
  const std::byte* w = p.w;
  for (long long b = 0; b < p.n_blocks; ++b, w += T * Q6K::kExpandedBytes) {
    fetch_next_y<T, R>(p, b);
    sums.add_half(w, 0);
    sums.add_half(w, 1);
    sums.end_block(w);
  }
#pragma GCC unroll 2
  for (int t = 0; t < T; ++t)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
      _mm512_mask_storeu_ps(p.y + r * p.y_stride + kOutputs * t, mask_of(p.n_live - kOutputs * t),
                            canonical(sums.acc[t][r]));
}

void multiply_six_rows(const Product& p, int n_rows, int n_tiles) {
  using Call = void (*)(const Product&);
  static constexpr Call kCalls[2][4] = {
      {multiply_six<1, 1>, multiply_six<1, 2>, multiply_six<1, 3>, multiply_six<1, 4>},
      {multiply_six<2, 1>, multiply_six<2, 2>, multiply_six<2, 3>, multiply_six<2, 4>}};
  kCalls[n_tiles - 1][n_rows - 1](p);
}

// One tile of each of the first S streams, the i-th from its beginning.
template <class Format, int S>
void one_row_tiles(const Args& a, const tiles16::Streams& streams, long long i) {
  constexpr int kBlockBytes = kquant_block_bytes(Format::kType);
  constexpr int kHeaderBytes = kquant_header_bytes(Format::kType);
  const quantize::Row x = quantize::row_at(a.x, a.k, 0);
  const long long tile_bytes = kquant_tile_bytes(Format::kType, a.k);
  const std::byte *tile[S], *at[S];
  __m512 acc[S];
  typename Format::Scales scales[S];
#pragma GCC unroll 4
  for (int s = 0; s < S; ++s) {
    tile[s] = static_cast<const std::byte*>(a.w) + (streams.first[s] + i) * tile_bytes;
    at[s] = super_at<Format::kType>(tile[s], 0, a.k);
    acc[s] = _mm512_setzero_ps();
  }
  for (long long super = 0; super < a.k / kSuper; ++super) {
    const typename Format::Side side(x, super * kBlocks);
    for (int s = 0; s < S; ++s, at[s - 1] += kHeaderBytes) {
      fetch<kHeaderBytes>(at[s]);
      scales[s].load(tile[s], at[s], super);
    }
    for (int b = 0; b < kBlocks; ++b) {
      const long long block = super * kBlocks + b;
      const signed char* q = x.q + block * kBlock;
#pragma GCC unroll 4
      for (int s = 0; s < S; ++s) {
        fetch<kBlockBytes>(at[s]);
        acc[s] = Format::add_block(at[s], scales[s], b, q, x.scale[block], side, acc[s]);
        at[s] += kBlockBytes;
      }
    }
  }
#pragma GCC unroll 4
  for (int s = 0; s < S; ++s) {
    const long long o = (streams.first[s] + i) * kOutputs;
    _mm512_mask_storeu_ps(static_cast<float*>(a.y) + o, mask_of(a.n - o), canonical(acc[s]));
  }
}

template <class Format>
void one_row(const Args& a, long long tile, long long tile_end) {
  tiles16::for_each_of_streams(tile, tile_end,
                               [&](auto n, const tiles16::Streams& streams, long long i) {
                                 one_row_tiles<Format, n>(a, streams, i);
                               });
}

template <class Format>
void expand(const std::byte* tile, const Run& run, std::byte* out, long long out_stride) {
  for (long long s = run.first / kBlocks; s < (run.first + run.n) / kBlocks; ++s) {
    const std::byte* super = super_at<Format::kType>(tile, s, run.k);
    typename Format::Scales scales;
    scales.load(tile, super, s);
    const std::byte* block = super + kquant_header_bytes(Format::kType);
    for (int b = 0; b < kBlocks; ++b, out += out_stride) {
      Format::expand_block(block, scales, b, out);
      block += kquant_block_bytes(Format::kType);
    }
  }
}

template <class Format>
constexpr long long tile_bytes(long long k) {
  return kquant_tile_bytes(Format::kType, k);
}

// Multiplied as `like` is, once expanded.
template <class Format>
tiles16::TileKernel kernel_like(DType like) {
  tiles16::TileKernel kernel = kernel_of(like);
  kernel.tile_bytes = tile_bytes<Format>;
  kernel.unit_blocks = kBlocks;
  kernel.max_packed_rows = kFewRows;
  kernel.max_packed_tiles = kFewTiles;
  kernel.one_row = one_row<Format>;
  kernel.multiply_packed = multiply_few<Format>;
  kernel.expand = expand<Format>;
  return kernel;
}

tiles16::TileKernel kernel_for(DType type) {
  if (type == DType::q4_k) return kernel_like<WithMin<DType::q4_k>>(DType::q4_1);
  if (type == DType::q5_k) return kernel_like<WithMin<DType::q5_k>>(DType::q4_1);
  if (type == DType::iq4_xs) return kernel_like<Iq4Xs>(DType::iq4_nl);
  return {.tile_bytes = tile_bytes<Q6K>,
          .unit_blocks = kBlocks,
          .wide_q_bytes = 0,
          .extra_bytes = 8,
          .expanded_bytes = Q6K::kExpandedBytes,
          .max_rows = 4,
          .max_tiles = 2,
          .chunk_bytes = kChunkBytes,
          .panel_bytes = kPanelBytes,
          .packed_rows = 0,
          .max_packed_rows = 0,
          .max_packed_tiles = 0,
          .one_row = one_row<Q6K>,
          .prepare = Q6K::prepare,
          .expand = expand<Q6K>,
          .multiply = multiply_six_rows,
          .multiply_packed = nullptr};
}

}  // namespace

size_t workspace_bytes_kquants(const Args& a, int n_lanes) {
  return tiles16::workspace_bytes(a, n_lanes, kernel_for(a.w_type));
}

Status run_kquants(const Args& a, Exec& exec) {
  return tiles16::run(a, exec, kernel_for(a.w_type));
}

}  // namespace millrace::matmul::avx512_vnni
MILLRACE_TARGET_END
