#include <array>
#include <utility>

#include "base/isa.h"
#include "kernels/lanes_avx512.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul/pack_kquants.h"
#include "kernels/matmul/tiles_avx512.h"
#include "kernels/quantize/row.h"

MILLRACE_TARGET_AVX512_VNNI
namespace millrace::matmul::avx512_vnni {
namespace {

using lanes::avx512::Float;
using lanes::avx512::fma;
using lanes::avx512::kVectors16;
using lanes::avx512::kWidth;
using lanes::avx512::splat;
using quantize::kBlock;
using tiles16::At;
using tiles16::kOutputs;
using tiles16::Product;
using tiles16::Run;

using Ints = __m512i;

[[gnu::always_inline]] inline Ints every_byte(char value) {
  return _mm512_set1_epi8(value);
}
[[gnu::always_inline]] inline Ints every_word(int value) {
  return _mm512_set1_epi32(value);
}
[[gnu::always_inline]] inline Ints u16_at(const std::byte* at) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}
[[gnu::always_inline]] inline Ints and_of(Ints a, Ints b) {
  return _mm512_and_si512(a, b);
}
// nibbles | (bits & mask)
[[gnu::always_inline]] inline Ints join(Ints nibbles, Ints bits, Ints mask) {
  return _mm512_ternarylogic_epi32(nibbles, bits, mask, 0xf8);
}
// Shifts inside 16 bits; what crosses into the neighbouring byte is masked away by join.
[[gnu::always_inline]] inline Ints shifted16(Ints v, int left) {
  return left >= 0 ? _mm512_slli_epi16(v, static_cast<unsigned>(left))
                   : _mm512_srli_epi16(v, static_cast<unsigned>(-left));
}
[[gnu::always_inline]] inline Ints shifted32(Ints v, int left) {
  return left >= 0 ? _mm512_slli_epi32(v, static_cast<unsigned>(left))
                   : _mm512_srli_epi32(v, static_cast<unsigned>(-left));
}
[[gnu::always_inline]] inline Ints plus(Ints a, Ints b) {
  return _mm512_add_epi32(a, b);
}
[[gnu::always_inline]] inline Float to_floats(Ints v) {
  return _mm512_cvtepi32_ps(v);
}
[[gnu::always_inline]] inline Float fnma(Float a, Float b, Float c) {
  return _mm512_fnmadd_ps(a, b, c);
}

template <DType kType>
Ints dot_of(const std::byte* block, const signed char* q);

// The table's values are taken plus 128, so the dots start at -128 * sum of x. Expanded they stay
// bytes.
struct ValueSide {
  int bias[kSuper / kBlock];

  [[gnu::always_inline]] ValueSide(const quantize::Row& x, long long b) {
    for (int i = 0; i < kSuper / kBlock; ++i) bias[i] = -128 * x.sum[b + i];
  }
};
constexpr int kValueBytes = 64 * kGroups;
Ints dot_of_values(const std::byte* block, int b, const signed char* q, const ValueSide& side);
void expand_values(const std::byte* block, std::byte* out);

#include "kernels/matmul/kquants_body.inc"

// Vectors 4 * half to 4 * half + 3 of a block times one row.
template <DType kType>
[[gnu::always_inline]] inline Ints dot_half(const std::byte* block, int half, const signed char* q,
                                            Ints sum) {
#pragma GCC unroll 4
  for (int v = 4 * half; v < 4 * half + 4; ++v)
    sum = _mm512_dpbusd_epi32(sum, vector_at<kType>(block, v), four_at(q + 4 * v));
  return sum;
}

template <DType kType>
[[gnu::always_inline]] inline Ints dot_of(const std::byte* block, const signed char* q) {
  const Ints zero = _mm512_setzero_si512();
  return plus(dot_half<kType>(block, 0, q, zero), dot_half<kType>(block, 1, q, zero));
}

[[gnu::always_inline]] inline Ints dot_of_values(const std::byte* block, int b,
                                                 const signed char* q, const ValueSide& side) {
  constexpr DType kType = DType::iq4_xs;
  return plus(dot_half<kType>(block, 0, q, every_word(side.bias[b])),
              dot_half<kType>(block, 1, q, _mm512_setzero_si512()));
}

[[gnu::always_inline]] inline void expand_values(const std::byte* block, std::byte* out) {
  expand_codes<DType::iq4_xs>(block, out);
}

// A few rows: a vector is decoded just before it is multiplied. That the tiles' addresses seem to
// depend on the sums so far keeps g++ from decoding all vectors first and spilling them.
template <class Format, int T, int R>
void multiply_packed(const Product& p) {
  constexpr DType kType = Format::kType;
  constexpr bool kMin = kType != DType::iq4_xs;
  constexpr int kHeaderBytes = kquant_header_bytes(kType), kBlockBytes = kquant_block_bytes(kType);
  Sums<T, R, kMin> sums(p);
  tiles16::Ahead ahead = p.ahead;
  const std::byte* tile[T];
#pragma GCC unroll 2
  for (int t = 0; t < T; ++t) tile[t] = p.w + t * p.n_blocks / kBlocks * kquant_super_bytes(kType);
  for (long long s = 0; s < p.n_blocks / kBlocks; ++s) {
    typename Format::Scales scales[T];
#pragma GCC unroll 2
    for (int t = 0; t < T; ++t, tile[t - 1] += kHeaderBytes) scales[t].load(nullptr, tile[t], s, 0);
    for (int b = 0; b < kBlocks; ++b) {
      ahead.fetch();
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
        tile[t] += kBlockBytes;
        d[t] = scales[t].dw[b];
        if constexpr (kMin)
          m[t] = scales[t].min(b);
        else
          m[t] = d[t];
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

    [[gnu::always_inline]] void load(const std::byte* tile, const std::byte* at, long long s, int) {
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

// The packed bytes serve a few rows.
template <class Format>
tiles16::TileKernel kernel_with_few(DType like) {
  tiles16::TileKernel kernel = kernel_like<Format>(like);
  kernel.packed_rows = kPackedRows;
  kernel.max_packed_rows = kFewRows;
  kernel.max_packed_tiles = kFewTiles;
  kernel.multiply_packed = multiply_few<Format>;
  return kernel;
}

tiles16::TileKernel kernel_for(DType type) {
  if (type == DType::q4_k) return kernel_with_few<WithMin<DType::q4_k>>(DType::q4_1);
  if (type == DType::q5_k) return kernel_with_few<WithMin<DType::q5_k>>(DType::q4_1);
  if (type == DType::iq4_xs) return kernel_with_few<Iq4Xs>(DType::iq4_nl);
  return {.tile_bytes = [](long long k) { return kquant_tile_bytes(DType::q6_k, k); },
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
