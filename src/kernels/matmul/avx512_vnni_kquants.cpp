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
template <int kLeft>
__m512i shifted(__m512i v) {
  if constexpr (kLeft >= 0) return _mm512_slli_epi16(v, kLeft);
  return _mm512_srli_epi16(v, -kLeft);
}

// A NaN result has one pattern, whichever operand it came from.
__m512 canonical(__m512 v) {
  const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(kNanBits)));
  return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);
}

template <int kRows>
void store(const KquantTile& t, const __m512 (&acc)[kRows]) {
  const auto live = static_cast<__mmask16>((1u << t.live) - 1);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
    _mm512_mask_storeu_ps(t.y + r * t.y_stride, live, canonical(acc[r]));
}

// dot[r] += the four vectors of one half of a block (k = 16 * half to 16 * half + 15) times x.
template <int kRows>
void add_dots(__m512i (&dot)[kRows], const __m512i (&w)[4], const char* x, long long x_stride) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j)
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      dot[r] = _mm512_dpbusd_epi32(dot[r], w[j], four_at(x + r * x_stride + 4 * j));
}

// Q4_K and Q5_K: d * scale and dmin * minimum of a superblock's eight blocks.
struct Scales {
  __m512 dw[8], mw[8];

  explicit Scales(const Byte* super) {
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

struct Q4K {
  static constexpr DType kType = DType::q4_k;
  static void weights(const Byte* block, __m512i (&low)[4], __m512i (&high)[4]) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512i line = line_at(block + 64 * j);
      low[j] = low_nibbles(line);
      high[j] = high_nibbles(line);
    }
  }
};

struct Q5K {
  static constexpr DType kType = DType::q5_k;
  static void weights(const Byte* block, __m512i (&low)[4], __m512i (&high)[4]) {
    Q4K::weights(block, low, high);
    const __m512i bits = line_at(block + kNibbleBytes), bit = _mm512_set1_epi8(16);
    low[0] = join(low[0], shifted<4>(bits), bit);
    low[1] = join(low[1], shifted<3>(bits), bit);
    low[2] = join(low[2], shifted<2>(bits), bit);
    low[3] = join(low[3], shifted<1>(bits), bit);
    high[0] = join(high[0], bits, bit);
    high[1] = join(high[1], shifted<-1>(bits), bit);
    high[2] = join(high[2], shifted<-2>(bits), bit);
    high[3] = join(high[3], shifted<-3>(bits), bit);
  }
};

struct Q6K {
  static constexpr DType kType = DType::q6_k;
  static void join_bits(__m512i (&half)[4], __m512i bits) {
    const __m512i mask = _mm512_set1_epi8(0x30);
    half[0] = join(half[0], shifted<4>(bits), mask);
    half[1] = join(half[1], shifted<2>(bits), mask);
    half[2] = join(half[2], bits, mask);
    half[3] = join(half[3], shifted<-2>(bits), mask);
  }
  static void weights(const Byte* block, __m512i (&low)[4], __m512i (&high)[4]) {
    Q4K::weights(block, low, high);
    join_bits(low, line_at(block + kNibbleBytes));
    join_bits(high, line_at(block + kNibbleBytes + 64));
  }
};

template <class Format, int kRows>
void tile_with_min(const KquantTile& t) {
  __m512 acc[kRows];
  for (auto& a : acc) a = _mm512_setzero_ps();
  const char *x = t.x, *scale = t.x + t.k, *side = t.side;
  const Byte* super = t.w;
  for (long long s = 0; s < t.k / kSuper; ++s, super += kquant_super_bytes(Format::kType)) {
    fetch_ahead<kRows, kSuperHeader>(super);
    const Scales scales(super);
    const Byte* block = super + kSuperHeader;
    for (int b = 0; b < 8; ++b, block += kquant_block_bytes(Format::kType)) {
      fetch_ahead<kRows, kquant_block_bytes(Format::kType)>(block);
      __m512i low[4], high[4], dot[kRows];
      Format::weights(block, low, high);
      for (auto& d : dot) d = _mm512_setzero_si512();
      add_dots(dot, low, x, t.x_stride);
      add_dots(dot, high, x + 16, t.x_stride);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512 dwx = _mm512_mul_ps(scales.dw[b], word_at(scale + r * t.x_stride));
        acc[r] = _mm512_fmadd_ps(dwx, _mm512_cvtepi32_ps(dot[r]), acc[r]);
        acc[r] = _mm512_fnmadd_ps(scales.mw[b], word_at(side + r * t.side_stride), acc[r]);
      }
      x += 32;
      scale += 4;
      side += 4;
    }
  }
  store(t, acc);
}

__m512 bytes_as_floats(const Byte* at) {
  const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(at));
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

// Q6_K. The dots start at -32 * sum of x, which takes the bias off. |scale * dot| summed over both
// halves is at most 128 * 32 * 127 * 32 < 2^24, so f32 holds the block's integer exactly.
template <int kRows>
void tile_q6(const KquantTile& t) {
  __m512 acc[kRows];
  for (auto& a : acc) a = _mm512_setzero_ps();
  const char *x = t.x, *scale = t.x + t.k, *side = t.side;
  const Byte* super = t.w + kquant_head_bytes(DType::q6_k, t.k);
  for (long long s = 0; s < t.k / kSuper; ++s, super += kquant_super_bytes(DType::q6_k)) {
    fetch_ahead<kRows, kSuperHeader>(super);
    const __m512 d = halves_at(t.w + 32 * s);
    const Byte* block = super + kSuperHeader;
    for (int b = 0; b < 8; ++b, block += kquant_block_bytes(DType::q6_k)) {
      const __m512 scale0 = bytes_as_floats(super + 32 * b);
      const __m512 scale1 = bytes_as_floats(super + 32 * b + 16);
      fetch_ahead<kRows, kquant_block_bytes(DType::q6_k)>(block);
      __m512i low[4], high[4], dot[kRows];
      __m512 sum[kRows];
      Q6K::weights(block, low, high);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) dot[r] = four_at(side + r * t.side_stride);
      add_dots(dot, low, x, t.x_stride);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        sum[r] = _mm512_mul_ps(scale0, _mm512_cvtepi32_ps(dot[r]));
        dot[r] = four_at(side + r * t.side_stride + 4);
      }
      add_dots(dot, high, x + 16, t.x_stride);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        sum[r] = _mm512_fmadd_ps(scale1, _mm512_cvtepi32_ps(dot[r]), sum[r]);
        const __m512 dx = word_at(scale + r * t.x_stride);
        acc[r] = _mm512_fmadd_ps(_mm512_mul_ps(d, dx), sum[r], acc[r]);
      }
      x += 32;
      scale += 4;
      side += 8;
    }
  }
  store(t, acc);
}

// scale * float(sum) of each block, for the minimum.
void prepare_min(const quantize::Row& row, long long k, char* side) {
  auto* out = reinterpret_cast<float*>(side);
  for (long long b = 0; b < k / quantize::kBlock; ++b)
    out[b] = row.scale[b] * static_cast<float>(row.sum[b]);
}

// -32 * the sum of each 16 of x.
void prepare_q6(const quantize::Row& row, long long k, char* side) {
  auto* out = reinterpret_cast<int*>(side);
  const __m128i ones = _mm_set1_epi8(1);
  for (long long g = 0; g < k / 16; ++g) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row.q + 16 * g));
    const __m128i four = _mm_dpbusd_epi32(_mm_setzero_si128(), ones, x);
    const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    out[g] = -32 * (_mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 1));
  }
}

template <class Format>
struct WithMin {
  static constexpr int kMaxRows = 8;
  static void prepare(const quantize::Row& row, long long k, char* side) {
    prepare_min(row, k, side);
  }
  template <int kRows>
  static void rows(const KquantTile& t) {
    tile_with_min<Format, kRows>(t);
  }
};

struct Six {
  static constexpr int kMaxRows = 8;
  static void prepare(const quantize::Row& row, long long k, char* side) {
    prepare_q6(row, k, side);
  }
  template <int kRows>
  static void rows(const KquantTile& t) {
    tile_q6<kRows>(t);
  }
};

}  // namespace

Status run_kquants(const Args& a, Exec& exec) {
  if (a.w_type == DType::q4_k) return walk<WithMin<Q4K>>(a, exec);
  if (a.w_type == DType::q5_k) return walk<WithMin<Q5K>>(a, exec);
  return walk<Six>(a, exec);
}

}  // namespace millrace::matmul::avx512_vnni
MILLRACE_TARGET_END
