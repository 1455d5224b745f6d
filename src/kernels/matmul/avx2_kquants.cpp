#include <immintrin.h>

#include <cstring>

#include "base/isa.h"
#include "kernels/matmul/kquants.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul/output.h"

// A tile's 16 outputs are two halves of 8. One row takes both at once, so that lines are read
// whole; several rows take one half after the other, which leaves registers for four rows.
MILLRACE_TARGET_AVX2
namespace millrace::matmul::avx2 {
namespace {

using Byte = unsigned char;

__m256i half_line_at(const Byte* at) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
}
__m256i four_at(const char* at) {
  int bytes;
  std::memcpy(&bytes, at, 4);
  return _mm256_set1_epi32(bytes);
}
__m256 word_at(const char* at) {
  float value;
  std::memcpy(&value, at, 4);
  return _mm256_set1_ps(value);
}
__m256 halves_at(const Byte* at) {
  return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(at)));
}
__m256i low_nibbles(__m256i line) {
  return _mm256_and_si256(line, _mm256_set1_epi8(15));
}
__m256i high_nibbles(__m256i line) {
  return low_nibbles(_mm256_srli_epi16(line, 4));
}
__m256i join(__m256i nibbles, __m256i bits, __m256i mask) {
  return _mm256_or_si256(nibbles, _mm256_and_si256(bits, mask));
}
// Shifts inside 16 bits; what crosses into the neighbouring byte is masked away by join.
__m256i shifted(__m256i v, int left) {
  return left >= 0 ? _mm256_slli_epi16(v, left) : _mm256_srli_epi16(v, -left);
}

// A NaN result has one pattern, whichever operand it came from.
__m256 canonical(__m256 v) {
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(kNanBits)));
  return _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

void store(float* y, __m256 acc, int live) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  _mm256_maskstore_ps(y, _mm256_cmpgt_epi32(_mm256_set1_epi32(live), index), canonical(acc));
}

// Vector v (0 to 7) of a block's 8 outputs at `block`.
struct Q4K {
  static constexpr DType kType = DType::q4_k;
  // Vectors whose u8 x i8 pair sums fit into 16 bits together: 8 * 2 * 15 * 127 < 2^15.
  static constexpr int kRun = 8;
  [[gnu::always_inline]] static __m256i vector(const Byte* block, int v) {
    const __m256i line = half_line_at(block + 64 * (v % 4));
    return v < 4 ? low_nibbles(line) : high_nibbles(line);
  }
};

struct Q5K {
  static constexpr DType kType = DType::q5_k;
  static constexpr int kRun = 4;  // 4 * 2 * 31 * 127 < 2^15
  [[gnu::always_inline]] static __m256i vector(const Byte* block, int v) {
    const __m256i bits = half_line_at(block + kNibbleBytes);
    return join(Q4K::vector(block, v), shifted(bits, 4 - v), _mm256_set1_epi8(16));
  }
};

struct Q6K {
  static constexpr DType kType = DType::q6_k;
  static constexpr int kRun = 2;  // 2 * 2 * 63 * 127 < 2^15
  [[gnu::always_inline]] static __m256i vector(const Byte* block, int v) {
    const __m256i bits = half_line_at(block + kNibbleBytes + 64 * (v / 4));
    return join(Q4K::vector(block, v), shifted(bits, 4 - 2 * (v % 4)), _mm256_set1_epi8(0x30));
  }
};

// sums[r][h] = the 16-bit pair sums of vectors first to first + kRun - 1 of half h times row r.
template <class Format, int kRows, int kHalves>
[[gnu::always_inline]] inline void pair_sums(const Byte* block, int first, const char* x,
                                             long long x_stride, __m256i (&sums)[kRows][kHalves]) {
#pragma GCC unroll 8
  for (int v = first; v < first + Format::kRun; ++v)
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      const __m256i w = Format::vector(block + 32 * h, v);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const __m256i pairs = _mm256_maddubs_epi16(w, four_at(x + r * x_stride + 4 * v));
        sums[r][h] = v == first ? pairs : _mm256_add_epi16(sums[r][h], pairs);
      }
    }
}

// Q4_K and Q5_K: d * scale and dmin * minimum of a superblock's eight blocks, 8 outputs.
struct Scales {
  __m256 dw[8], mw[8];

  [[gnu::always_inline]] void load(const Byte* super, int half) {
    const __m256 d = halves_at(super + 16 * half), dmin = halves_at(super + 32 + 16 * half);
    const Byte* words = super + 64 + 32 * half;
    const __m256i w0 = half_line_at(words), w1 = half_line_at(words + 64);
    const __m256i w2 = half_line_at(words + 128);
    const __m256i six = _mm256_set1_epi8(0x3f), high = _mm256_set1_epi8(0x30);
    put(dw, d, _mm256_and_si256(w0, six));
    put(dw + 4, d, join(low_nibbles(w2), _mm256_srli_epi16(w0, 2), high));
    put(mw, dmin, _mm256_and_si256(w1, six));
    put(mw + 4, dmin, join(high_nibbles(w2), _mm256_srli_epi16(w1, 2), high));
  }
  static void put(__m256* out, __m256 d, __m256i bytes) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256i byte =
          _mm256_and_si256(_mm256_srli_epi32(bytes, 8 * i), _mm256_set1_epi32(255));
      out[i] = _mm256_mul_ps(d, _mm256_cvtepi32_ps(byte));
    }
  }
};

template <class Format, int kRows, int kHalves>
[[gnu::always_inline]] inline void dot_block(const Byte* block, const char* x, long long x_stride,
                                             __m256i (&dot)[kRows][kHalves]) {
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 2
  for (int first = 0; first < 8; first += Format::kRun) {
    __m256i sums[kRows][kHalves];
    pair_sums<Format>(block, first, x, x_stride, sums);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int h = 0; h < kHalves; ++h) {
        const __m256i four = _mm256_madd_epi16(sums[r][h], ones);
        dot[r][h] = first == 0 ? four : _mm256_add_epi32(dot[r][h], four);
      }
  }
}

// kHalves halves of the tile from `half` on.
template <class Format, int kRows, int kHalves>
void halves_with_min(const KquantTile& t, int half) {
  __m256 acc[kRows][kHalves];
  for (auto& row : acc)
    for (auto& a : row) a = _mm256_setzero_ps();
  const char *x = t.x, *scale = t.x + t.k, *side = t.side;
  const Byte* super = t.w;
  for (long long s = 0; s < t.k / kSuper; ++s, super += kquant_super_bytes(Format::kType)) {
    if constexpr (kRows == 1) fetch_ahead<kSuperHeader>(super);
    Scales scales[kHalves];
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) scales[h].load(super, half + h);
    const Byte* block = super + kSuperHeader + 32 * half;
    for (int b = 0; b < 8; ++b, block += kquant_block_bytes(Format::kType)) {
      if constexpr (kRows == 1) fetch_ahead<kquant_block_bytes(Format::kType)>(block);
      __m256i dot[kRows][kHalves];
      dot_block<Format>(block, x, t.x_stride, dot);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
        for (int h = 0; h < kHalves; ++h) {
          const __m256 dwx = _mm256_mul_ps(scales[h].dw[b], word_at(scale + r * t.x_stride));
          acc[r][h] = _mm256_fmadd_ps(dwx, _mm256_cvtepi32_ps(dot[r][h]), acc[r][h]);
          acc[r][h] =
              _mm256_fnmadd_ps(scales[h].mw[b], word_at(side + r * t.side_stride), acc[r][h]);
        }
      x += 32;
      scale += 4;
      side += 4;
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h)
      store(t.y + r * t.y_stride + 8 * (half + h), acc[r][h], t.live - 8 * (half + h));
}

// Q6_K: a group's scale twice in 16 bits, and twice a block's two scales side by side.
struct SixScales {
  __m256i twice[16], pair[8];

  [[gnu::always_inline]] void load(const Byte* super, int half) {
    for (int b = 0; b < 8; ++b) {
      const __m256i even = bytes_at(super + 32 * b + 8 * half);
      const __m256i odd = bytes_at(super + 32 * b + 16 + 8 * half);
      twice[2 * b] = beside(even, even);
      twice[2 * b + 1] = beside(odd, odd);
      const __m256i both = beside(even, odd);
      pair[b] = _mm256_add_epi16(both, both);
    }
  }
  static __m256i bytes_at(const Byte* at) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
  }
  static __m256i beside(__m256i low, __m256i high) {
    return _mm256_blend_epi16(low, _mm256_slli_epi32(high, 16), 0xaa);
  }
};

// The bias comes off by pair * 16 sums: 2 * scale times 16 * (sum of 16 x), both within 16 bits.
template <int kRows, int kHalves>
[[gnu::always_inline]] inline void dot_q6(const Byte* block, const SixScales* scales, int b,
                                          const char* x, long long x_stride, const char* side,
                                          long long side_stride, __m256i (&dot)[kRows][kHalves]) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h)
      dot[r][h] =
          _mm256_sub_epi32(_mm256_setzero_si256(),
                           _mm256_madd_epi16(scales[h].pair[b], four_at(side + r * side_stride)));
#pragma GCC unroll 4
  for (int first = 0; first < 8; first += Q6K::kRun) {
    __m256i sums[kRows][kHalves];
    pair_sums<Q6K>(block, first, x, x_stride, sums);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int h = 0; h < kHalves; ++h)
        dot[r][h] = _mm256_add_epi32(
            dot[r][h], _mm256_madd_epi16(sums[r][h], scales[h].twice[2 * b + first / 4]));
  }
}

template <int kRows, int kHalves>
void halves_q6(const KquantTile& t, int half) {
  __m256 acc[kRows][kHalves];
  for (auto& row : acc)
    for (auto& a : row) a = _mm256_setzero_ps();
  const char *x = t.x, *scale = t.x + t.k, *side = t.side;
  const Byte* super = t.w + kquant_head_bytes(DType::q6_k, t.k);
  for (long long s = 0; s < t.k / kSuper; ++s, super += kquant_super_bytes(DType::q6_k)) {
    if constexpr (kRows == 1) fetch_ahead<kSuperHeader>(super);
    SixScales scales[kHalves];
    __m256 d[kHalves];
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      scales[h].load(super, half + h);
      d[h] = halves_at(t.w + 32 * s + 16 * (half + h));
    }
    const Byte* block = super + kSuperHeader + 32 * half;
    for (int b = 0; b < 8; ++b, block += kquant_block_bytes(DType::q6_k)) {
      if constexpr (kRows == 1) fetch_ahead<kquant_block_bytes(DType::q6_k)>(block);
      __m256i dot[kRows][kHalves];
      dot_q6(block, scales, b, x, t.x_stride, side, t.side_stride, dot);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
        for (int h = 0; h < kHalves; ++h)
          acc[r][h] = _mm256_fmadd_ps(_mm256_mul_ps(d[h], word_at(scale + r * t.x_stride)),
                                      _mm256_cvtepi32_ps(dot[r][h]), acc[r][h]);
      x += 32;
      scale += 4;
      side += 4;
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h)
      store(t.y + r * t.y_stride + 8 * (half + h), acc[r][h], t.live - 8 * (half + h));
}

// scale * float(sum) of each block, for the minimum.
void prepare_min(const quantize::Row& row, long long k, char* side) {
  auto* out = reinterpret_cast<float*>(side);
  for (long long b = 0; b < k / quantize::kBlock; ++b)
    out[b] = row.scale[b] * static_cast<float>(row.sum[b]);
}

// 16 * the sums of each block's two 16 of x, side by side in 16 bits (16 * 16 * 127 < 2^15).
void prepare_q6(const quantize::Row& row, long long k, char* side) {
  const __m256i ones = _mm256_set1_epi8(1), sixteen = _mm256_set1_epi16(16);
  for (long long b = 0; b < k / quantize::kBlock; ++b, side += 4) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row.q + 32 * b));
    __m256i sums = _mm256_madd_epi16(_mm256_maddubs_epi16(ones, x), sixteen);
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4e));
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xb1));
    const int first = _mm256_cvtsi256_si32(sums), second = _mm256_extract_epi32(sums, 4);
    const int both = (first & 0xffff) | second << 16;
    std::memcpy(side, &both, 4);
  }
}

template <class Format>
struct WithMin {
  static constexpr int kMaxRows = 4, kMaxTiles = 1;
  static void prepare(const quantize::Row& row, long long k, char* side) {
    prepare_min(row, k, side);
  }
  template <int kRows, int kTiles>
  static void rows(const KquantTile& t) {
    if constexpr (kRows == 1) return halves_with_min<Format, 1, 2>(t, 0);
    halves_with_min<Format, kRows, 1>(t, 0);
    if (t.live > 8) halves_with_min<Format, kRows, 1>(t, 1);
  }
};

struct Six {
  static constexpr int kMaxRows = 4, kMaxTiles = 1;
  static void prepare(const quantize::Row& row, long long k, char* side) {
    prepare_q6(row, k, side);
  }
  template <int kRows, int kTiles>
  static void rows(const KquantTile& t) {
    if constexpr (kRows == 1) return halves_q6<1, 2>(t, 0);
    halves_q6<kRows, 1>(t, 0);
    if (t.live > 8) halves_q6<kRows, 1>(t, 1);
  }
};

}  // namespace

Status run_kquants(const Args& a, Exec& exec) {
  if (a.w_type == DType::q4_k) return walk<WithMin<Q4K>>(a, exec);
  if (a.w_type == DType::q5_k) return walk<WithMin<Q5K>>(a, exec);
  return walk<Six>(a, exec);
}

}  // namespace millrace::matmul::avx2
MILLRACE_TARGET_END
