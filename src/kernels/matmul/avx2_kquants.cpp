#include "base/isa.h"
#include "kernels/lanes_avx2.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul/pack_kquants.h"
#include "kernels/matmul/tiles_avx2.h"
#include "kernels/quantize/row.h"

MILLRACE_TARGET_AVX2
namespace millrace::matmul::avx2 {
namespace {

using lanes::avx2::Float;
using lanes::avx2::fma;
using lanes::avx2::kVectors16;
using lanes::avx2::kWidth;
using lanes::avx2::splat;
using quantize::kBlock;
using tiles16::kOutputs;
using tiles16::Run;

using Ints = __m256i;

[[gnu::always_inline]] inline Ints every_byte(char value) {
  return _mm256_set1_epi8(value);
}
[[gnu::always_inline]] inline Ints every_word(int value) {
  return _mm256_set1_epi32(value);
}
[[gnu::always_inline]] inline Ints u16_at(const std::byte* at) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}
[[gnu::always_inline]] inline Ints and_of(Ints a, Ints b) {
  return _mm256_and_si256(a, b);
}
// nibbles | (bits & mask)
[[gnu::always_inline]] inline Ints join(Ints nibbles, Ints bits, Ints mask) {
  return _mm256_or_si256(nibbles, _mm256_and_si256(bits, mask));
}
// Shifts inside 16 bits; what crosses into the neighbouring byte is masked away by join.
[[gnu::always_inline]] inline Ints shifted16(Ints v, int left) {
  return left >= 0 ? _mm256_slli_epi16(v, left) : _mm256_srli_epi16(v, -left);
}
[[gnu::always_inline]] inline Ints shifted32(Ints v, int left) {
  return left >= 0 ? _mm256_slli_epi32(v, left) : _mm256_srli_epi32(v, -left);
}
[[gnu::always_inline]] inline Ints plus(Ints a, Ints b) {
  return _mm256_add_epi32(a, b);
}
[[gnu::always_inline]] inline Float to_floats(Ints v) {
  return _mm256_cvtepi32_ps(v);
}
[[gnu::always_inline]] inline Float fnma(Float a, Float b, Float c) {
  return _mm256_fnmadd_ps(a, b, c);
}

template <DType kType>
Ints dot_of(const std::byte* block, const signed char* q);

// The table's values are multiplied signed: nothing of x is wanted beside its q. Expanded they are
// int16.
struct ValueSide {
  [[gnu::always_inline]] ValueSide(const quantize::Row&, long long) {}
};
constexpr int kValueBytes = 128 * kGroups;
Ints dot_of_values(const std::byte* block, int b, const signed char* q, const ValueSide& side);
void expand_values(const std::byte* block, std::byte* out);

#include "kernels/matmul/kquants_body.inc"

// The 16-bit pair sums of vectors first to first + kRun - 1 times one row.
template <DType kType, int kRun>
[[gnu::always_inline]] inline Ints pair_sums(const std::byte* block, int first,
                                             const signed char* q) {
  Ints sums;
#pragma GCC unroll 8
  for (int v = first; v < first + kRun; ++v) {
    const Ints pairs = _mm256_maddubs_epi16(vector_at<kType>(block, v), four_at(q + 4 * v));
    sums = v == first ? pairs : _mm256_add_epi16(sums, pairs);
  }
  return sums;
}

// As many vectors at once as fit into 16 bits together: 8 * 2 * 15 * 127 and 4 * 2 * 31 * 127 are
// below 2^15.
template <DType kType>
[[gnu::always_inline]] inline Ints dot_of(const std::byte* block, const signed char* q) {
  constexpr int kRun = kType == DType::q4_k ? 8 : 4;
  const Ints one = _mm256_set1_epi16(1);
  const Ints dot = _mm256_madd_epi16(pair_sums<kType, kRun>(block, 0, q), one);
  if constexpr (kRun == 8) return dot;
  return plus(dot, _mm256_madd_epi16(pair_sums<kType, kRun>(block, 4, q), one));
}

[[gnu::always_inline]] inline Ints dot_of_values(const std::byte* block, int, const signed char* q,
                                                 const ValueSide&) {
  Ints sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
#pragma GCC unroll 8
  for (int v = 0; v < kGroups; ++v)
    sum[v % 2] = add_signed(vector_at<DType::iq4_xs>(block, v), four_at(q + 4 * v), sum[v % 2]);
  return plus(sum[0], sum[1]);
}

// As Q8_0 is expanded: the even k, then the odd ones.
[[gnu::always_inline]] inline void put_wide(std::byte* out, int v, Ints even, Ints odd) {
  put(out + 64 * v, even);
  put(out + 64 * v + kValueBytes / 2, odd);
}

[[gnu::always_inline]] inline void expand_values(const std::byte* block, std::byte* out) {
#pragma GCC unroll 8
  for (int v = 0; v < kGroups; ++v) {
    const Wide w = widen(vector_at<DType::iq4_xs>(block, v));
    put_wide(out, v, w.even, w.odd);
  }
}

struct Q6K {
  static constexpr DType kType = DType::q6_k;
  static constexpr int kRun = 2;  // 2 * 2 * 63 * 127 < 2^15

  // 16 * the sums of a block's two 16 of x, side by side in 16 bits (16 * 16 * 127 < 2^15).
  struct Side {
    int sums[kBlocks];

    [[gnu::always_inline]] Side(const quantize::Row& x, long long first) {
      for (int b = 0; b < kBlocks; ++b) sums[b] = both_of(x.q + (first + b) * kBlock);
    }
    [[gnu::always_inline]] static int both_of(const signed char* q) {
      const __m256i x = bytes_at(reinterpret_cast<const std::byte*>(q));
      const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), x);
      __m256i sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(16));
      sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4e));
      sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xb1));
      return (_mm256_cvtsi256_si32(sums) & 0xffff) | _mm256_extract_epi32(sums, 4) << 16;
    }
  };

  // A group's scale twice in 16 bits, and twice a block's two scales side by side.
  struct Scales {
    __m256i twice[2 * kBlocks], pair[kBlocks];
    __m256 d;

    [[gnu::always_inline]] void load(const std::byte* tile, const std::byte* super, long long s,
                                     int v) {
      d = f16_at(tile + 32 * s + 16 * v);
      for (int b = 0; b < kBlocks; ++b) {
        const __m256i even = scale_at(super + 32 * b + 8 * v);
        const __m256i odd = scale_at(super + 32 * b + 16 + 8 * v);
        twice[2 * b] = beside(even, even);
        twice[2 * b + 1] = beside(odd, odd);
        const __m256i both = beside(even, odd);
        pair[b] = _mm256_add_epi16(both, both);
      }
    }
    [[gnu::always_inline]] static __m256i scale_at(const std::byte* at) {
      return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
    }
    [[gnu::always_inline]] static __m256i beside(__m256i low, __m256i high) {
      return _mm256_blend_epi16(low, _mm256_slli_epi32(high, 16), 0xaa);
    }
  };

  // The bias comes off by pair * sums: 2 * scale times 16 * (sum of 16 x), both within 16 bits.
  [[gnu::always_inline]] static __m256 add_block(const std::byte* block, const Scales& scales,
                                                 int b, const signed char* q, float dx,
                                                 const Side& side, __m256 acc) {
    const __m256i bias = _mm256_madd_epi16(scales.pair[b], _mm256_set1_epi32(side.sums[b]));
    __m256i dot = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int v = 0; v < kGroups; v += kRun) {
      const __m256i sums = pair_sums<kType, kRun>(block, v, q);
      dot = _mm256_add_epi32(dot, _mm256_madd_epi16(sums, scales.twice[2 * b + v / 4]));
    }
    dot = _mm256_sub_epi32(dot, bias);
    const __m256 dwx = _mm256_mul_ps(scales.d, _mm256_set1_ps(dx));
    return _mm256_fmadd_ps(dwx, _mm256_cvtepi32_ps(dot), acc);
  }

  // As Q8_0 is expanded, in int16: scale * (code - 32), at most 128 * 32.
  [[gnu::always_inline]] static void expand_block(const std::byte* block, const Scales& scales,
                                                  int b, std::byte* out) {
#pragma GCC unroll 8
    for (int v = 0; v < kGroups; ++v) {
      const Wide w = widen(_mm256_sub_epi8(vector_at<kType>(block, v), every_byte(32)));
      const Ints scale = scales.twice[2 * b + v / 4];
      put_wide(out, v, _mm256_mullo_epi16(w.even, scale), _mm256_mullo_epi16(w.odd, scale));
    }
    put(out + kValueBytes, scales.d);
  }
};

tiles16::TileKernel kernel_for(DType type) {
  if (type == DType::q4_k) return kernel_like<WithMin<DType::q4_k>>(DType::q4_1);
  if (type == DType::q5_k) return kernel_like<WithMin<DType::q5_k>>(DType::q5_1);
  if (type == DType::iq4_xs) return kernel_like<Iq4Xs>(DType::iq4_nl);
  return kernel_like<Q6K>(DType::q8_0);
}

}  // namespace

size_t workspace_bytes_kquants(const Args& a, int n_lanes) {
  return tiles16::workspace_bytes(a, n_lanes, kernel_for(a.w_type));
}

Status run_kquants(const Args& a, Exec& exec) {
  return tiles16::run(a, exec, kernel_for(a.w_type));
}

}  // namespace millrace::matmul::avx2
MILLRACE_TARGET_END
