#include <immintrin.h>

#include <cstring>

#include "base/isa.h"
#include "kernels/matmul/kquants.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul/output.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

MILLRACE_TARGET_AVX512_VNNI
namespace millrace::matmul::avx512_vnni {
namespace {

using Byte = unsigned char;

__m512i line_at(const Byte* at) {
  return _mm512_load_si512(at);
}
__m512i four_at(const char* at) {
  int bytes;
  std::memcpy(&bytes, at, 4);
  return _mm512_set1_epi32(bytes);
}
__m512 word_at(const char* at) {
  float value;
  std::memcpy(&value, at, 4);
  return _mm512_set1_ps(value);
}
__m512 halves_at(const Byte* at) {
  return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(at)));
}
__m512i low_nibbles(__m512i line) {
  return _mm512_and_si512(line, _mm512_set1_epi8(15));
}
__m512i high_nibbles(__m512i line) {
  return low_nibbles(_mm512_srli_epi16(line, 4));
}
// nibbles | (bits & mask)
__m512i join(__m512i nibbles, __m512i bits, __m512i mask) {
  return _mm512_ternarylogic_epi32(nibbles, bits, mask, 0xf8);
}
// Shifts inside 16 bits; what crosses into the neighbouring byte is masked away by join.
__m512i shifted(__m512i v, int left) {
  return left >= 0 ? _mm512_slli_epi16(v, static_cast<unsigned>(left))
                   : _mm512_srli_epi16(v, static_cast<unsigned>(-left));
}

// A NaN result has one pattern, whichever operand it came from.
__m512 canonical(__m512 v) {
  const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(kNanBits)));
  return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);
}

// Vector v (0 to 7) of a block.
template <DType kType>
[[gnu::always_inline]] inline __m512i vector_at(const Byte* block, int v) {
  const __m512i line = line_at(block + 64 * (v % 4));
  const __m512i nibbles = v < 4 ? low_nibbles(line) : high_nibbles(line);
  if constexpr (kType == DType::q4_k) return nibbles;
  if constexpr (kType == DType::q5_k)
    return join(nibbles, shifted(line_at(block + kNibbleBytes), 4 - v), _mm512_set1_epi8(16));
  const __m512i bits = line_at(block + kNibbleBytes + 64 * (v / 4));
  return join(nibbles, shifted(bits, 4 - 2 * (v % 4)), _mm512_set1_epi8(0x30));
}

// kTiles tiles times kRows rows, in registers.
template <int kTiles, int kRows>
struct Dots {
  __m512i dot[kTiles][kRows];

  // Vectors 4 * kHalf to 4 * kHalf + 3 times x.
  template <DType kType, int kHalf>
  [[gnu::always_inline]] void add_half(const KquantTile& t, const Byte* block, const char* x) {
#pragma GCC unroll 4
    for (int v = 4 * kHalf; v < 4 * kHalf + 4; ++v) {
      __m512i w[kTiles];
#pragma GCC unroll 2
      for (int i = 0; i < kTiles; ++i) w[i] = vector_at<kType>(block + i * t.w_stride, v);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512i four = four_at(x + r * t.x_stride + 4 * v);
#pragma GCC unroll 2
        for (int i = 0; i < kTiles; ++i) dot[i][r] = _mm512_dpbusd_epi32(dot[i][r], w[i], four);
      }
    }
  }
};

// Q4_K and Q5_K: d * scale and dmin * minimum of a superblock's eight blocks.
struct MinScales {
  __m512 dw[8], mw[8];

  [[gnu::always_inline]] void load(const Byte* super) {
    const __m512 d = halves_at(super), dmin = halves_at(super + 32);
    const __m512i w0 = line_at(super + 64), w1 = line_at(super + 128), w2 = line_at(super + 192);
    const __m512i six = _mm512_set1_epi8(0x3f), high = _mm512_set1_epi8(0x30);
    put(dw, d, _mm512_and_si512(w0, six));
    put(dw + 4, d, join(low_nibbles(w2), _mm512_srli_epi16(w0, 2), high));
    put(mw, dmin, _mm512_and_si512(w1, six));
    put(mw + 4, dmin, join(high_nibbles(w2), _mm512_srli_epi16(w1, 2), high));
  }
  static void put(__m512* out, __m512 d, __m512i bytes) {
    const __m512i byte = _mm512_set1_epi32(255);
    out[0] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_and_si512(bytes, byte)));
    out[1] =
        _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(bytes, 8), byte)));
    out[2] =
        _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(bytes, 16), byte)));
    out[3] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_srli_epi32(bytes, 24)));
  }
};

// Q4_K and Q5_K.
template <DType kWeight>
struct WithMin {
  static constexpr DType kType = kWeight;
  static constexpr int kMaxRows = 6;    // two tiles: 12 integer and 12 f32 sums
  static constexpr int kSideBytes = 4;  // of a row's block

  // scale * float(sum) of each block.
  static void prepare(const quantize::Row& row, long long k, char* side) {
    auto* out = reinterpret_cast<float*>(side);
    for (long long b = 0; b < k / quantize::kBlock; ++b)
      out[b] = row.scale[b] * static_cast<float>(row.sum[b]);
  }

  template <int kTiles>
  struct Super {
    MinScales scales[kTiles];

    void load(const KquantTile& t, const Byte* super, long long) {
#pragma GCC unroll 2
      for (int i = 0; i < kTiles; ++i) scales[i].load(super + i * t.w_stride);
    }
    template <int kRows>
    [[gnu::always_inline]] void add(const KquantTile& t, const Byte* block, int b, const RowsAt& at,
                                    __m512 (&acc)[kTiles][kRows]) const {
      Dots<kTiles, kRows> sums;
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
        for (int i = 0; i < kTiles; ++i) sums.dot[i][r] = _mm512_setzero_si512();
      sums.template add_half<kType, 0>(t, block, at.x);
      sums.template add_half<kType, 1>(t, block, at.x);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512 dx = word_at(at.scale + r * t.x_stride);
        const __m512 dx_sum = word_at(at.side + r * t.side_stride);
#pragma GCC unroll 2
        for (int i = 0; i < kTiles; ++i) {
          const __m512 dwx = _mm512_mul_ps(scales[i].dw[b], dx);
          acc[i][r] = _mm512_fmadd_ps(dwx, _mm512_cvtepi32_ps(sums.dot[i][r]), acc[i][r]);
          acc[i][r] = _mm512_fnmadd_ps(scales[i].mw[b], dx_sum, acc[i][r]);
        }
      }
    }
  };
};

__m512 bytes_as_floats(const Byte* at) {
  const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(at));
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

// The dots start at -32 * sum of x, which takes the bias off. |scale * dot| summed over both halves
// is at most 128 * 32 * 127 * 32 < 2^24, so f32 holds the block's integer exactly.
struct Q6K {
  static constexpr DType kType = DType::q6_k;
  static constexpr int kMaxRows = 4;
  static constexpr int kSideBytes = 8;

  // -32 * the sum of each 16 of x.
  static void prepare(const quantize::Row& row, long long k, char* side) {
    auto* out = reinterpret_cast<int*>(side);
    const __m128i ones = _mm_set1_epi8(1);
    for (long long g = 0; g < k / 16; ++g) {
      const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row.q + 16 * g));
      const __m128i four = _mm_dpbusd_epi32(_mm_setzero_si128(), ones, x);
      const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
      out[g] = -32 * (_mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 1));
    }
  }

  template <int kTiles>
  struct Super {
    const Byte* scales;
    __m512 d[kTiles];

    void load(const KquantTile& t, const Byte* super, long long s) {
      scales = super;
#pragma GCC unroll 2
      for (int i = 0; i < kTiles; ++i) d[i] = halves_at(t.w + i * t.w_stride + 32 * s);
    }
    // sum = scale * dot of one half of a block, added to what `sum` has from the first.
    template <int kHalf, int kRows>
    [[gnu::always_inline]] void add_half(const KquantTile& t, const Byte* block, int b,
                                         const RowsAt& at, __m512 (&sum)[kTiles][kRows]) const {
      Dots<kTiles, kRows> sums;
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
        for (int i = 0; i < kTiles; ++i)
          sums.dot[i][r] = four_at(at.side + r * t.side_stride + 4 * kHalf);
      sums.template add_half<kType, kHalf>(t, block, at.x);
#pragma GCC unroll 2
      for (int i = 0; i < kTiles; ++i) {
        const __m512 scale = bytes_as_floats(scales + i * t.w_stride + 32 * b + 16 * kHalf);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const __m512 dot = _mm512_cvtepi32_ps(sums.dot[i][r]);
          sum[i][r] =
              kHalf == 0 ? _mm512_mul_ps(scale, dot) : _mm512_fmadd_ps(scale, dot, sum[i][r]);
        }
      }
    }
    template <int kRows>
    [[gnu::always_inline]] void add(const KquantTile& t, const Byte* block, int b, const RowsAt& at,
                                    __m512 (&acc)[kTiles][kRows]) const {
      __m512 sum[kTiles][kRows];
      add_half<0>(t, block, b, at, sum);
      add_half<1>(t, block, b, at, sum);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512 dx = word_at(at.scale + r * t.x_stride);
#pragma GCC unroll 2
        for (int i = 0; i < kTiles; ++i)
          acc[i][r] = _mm512_fmadd_ps(_mm512_mul_ps(d[i], dx), sum[i][r], acc[i][r]);
      }
    }
  };
};

template <class Format>
struct Kernel {
  static constexpr int kMaxRows = Format::kMaxRows;
  static constexpr int kMaxTiles = 2;
  static void prepare(const quantize::Row& row, long long k, char* side) {
    Format::prepare(row, k, side);
  }

  template <int kRows, int kTiles>
  static void rows(const KquantTile& t) {
    __m512 acc[kTiles][kRows];
#pragma GCC unroll 2
    for (int i = 0; i < kTiles; ++i)
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) acc[i][r] = _mm512_setzero_ps();
    RowsAt at = {t.x, t.x + t.k, t.side};
    const Byte* w = t.w + kquant_head_bytes(Format::kType, t.k);
    for (long long s = 0; s < t.k / kSuper; ++s) {
      typename Format::template Super<kTiles> super;
      if constexpr (kRows == 1) fetch_ahead<kSuperHeader>(w);
      super.load(t, w, s);
      w += kSuperHeader;
      for (int b = 0; b < 8; ++b, w += kquant_block_bytes(Format::kType)) {
        if constexpr (kRows == 1) fetch_ahead<kquant_block_bytes(Format::kType)>(w);
        super.add(t, w, b, at, acc);
        at.advance(Format::kSideBytes);
      }
    }
#pragma GCC unroll 2
    for (int i = 0; i < kTiles; ++i) {
      const int live = t.live - 16 * i;
      const auto mask = static_cast<__mmask16>(live >= 16 ? 0xffff : (1u << live) - 1);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
        _mm512_mask_storeu_ps(t.y + r * t.y_stride + 16 * i, mask, canonical(acc[i][r]));
    }
  }
};

}  // namespace

Status run_kquants(const Args& a, Exec& exec) {
  if (a.w_type == DType::q4_k) return walk<Kernel<WithMin<DType::q4_k>>>(a, exec);
  if (a.w_type == DType::q5_k) return walk<Kernel<WithMin<DType::q5_k>>>(a, exec);
  return walk<Kernel<Q6K>>(a, exec);
}

}  // namespace millrace::matmul::avx512_vnni
MILLRACE_TARGET_END
