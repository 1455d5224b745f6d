#include "base/isa.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul/pack_kquants.h"
#include "kernels/matmul/tiles_avx2.h"
#include "kernels/quantize/row.h"

// A tile's 16 outputs are two halves of 8. A format here is a struct that knows its codes and: what
// of x a superblock wants beside its q (Side), a superblock's scales for half a tile (Scales), one
// block of one row, and a run of blocks expanded for many rows.
MILLRACE_TARGET_AVX2
namespace millrace::matmul::avx2 {
namespace {

using quantize::kBlock;
using tiles16::kOutputs;
using tiles16::Run;

constexpr int kGroups = kBlock / 4;       // of four k
constexpr int kBlocks = kSuper / kBlock;  // of a superblock
constexpr int kAhead = 2048;              // how far one row fetches ahead in each stream

[[gnu::always_inline]] inline __m256i four_at(const signed char* q) {
  return words_of(reinterpret_cast<const std::byte*>(q));
}
[[gnu::always_inline]] inline __m256i join(__m256i nibbles, __m256i bits, __m256i mask) {
  return _mm256_or_si256(nibbles, _mm256_and_si256(bits, mask));
}
// Shifts inside 16 bits; what crosses into the neighbouring byte is masked away by join.
[[gnu::always_inline]] inline __m256i shifted(__m256i v, int left) {
  return left >= 0 ? _mm256_slli_epi16(v, left) : _mm256_srli_epi16(v, -left);
}

// Vector v (0 to 7) of 8 outputs of a block.
template <DType kType>
[[gnu::always_inline]] inline __m256i vector_at(const std::byte* block, int v) {
  const __m256i line = bytes_at(block + 64 * (v % 4));
  const __m256i nibbles = v < 4 ? low_nibbles(line) : high_nibbles(line);
  if constexpr (kType == DType::q4_k) return nibbles;
  if constexpr (kType == DType::iq4_xs) return iq4_values(nibbles);
  if constexpr (kType == DType::q5_k)
    return join(nibbles, shifted(bytes_at(block + kNibbleBytes), 4 - v), _mm256_set1_epi8(16));
  const __m256i bits = bytes_at(block + kNibbleBytes + 64 * (v / 4));
  return join(nibbles, shifted(bits, 4 - 2 * (v % 4)), _mm256_set1_epi8(0x30));
}

// The 16-bit pair sums of vectors first to first + kRun - 1 times one row.
template <DType kType, int kRun>
[[gnu::always_inline]] inline __m256i pair_sums(const std::byte* block, int first,
                                                const signed char* q) {
  __m256i sums;
#pragma GCC unroll 8
  for (int v = first; v < first + kRun; ++v) {
    const __m256i pairs = _mm256_maddubs_epi16(vector_at<kType>(block, v), four_at(q + 4 * v));
    sums = v == first ? pairs : _mm256_add_epi16(sums, pairs);
  }
  return sums;
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
  // Vectors whose u8 x i8 pair sums fit into 16 bits together: 8 * 2 * 15 * 127 and 4 * 2 * 31 *
  // 127 are below 2^15.
  static constexpr int kRun = kType == DType::q4_k ? 8 : 4;

  // dx * float(xsum) of each block.
  struct Side {
    alignas(32) float dx_sum[kBlocks];

    [[gnu::always_inline]] Side(const quantize::Row& x, long long b) {
      const __m256i sum = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x.sum + b));
      _mm256_store_ps(dx_sum, _mm256_mul_ps(_mm256_loadu_ps(x.scale + b), _mm256_cvtepi32_ps(sum)));
    }
  };

  // d * scale and dmin * minimum of the eight blocks.
  struct Scales {
    __m256 dw[kBlocks], mw[kBlocks];

    [[gnu::always_inline]] void load(const std::byte*, const std::byte* super, long long,
                                     int half) {
      const __m256 d = f16_at(super + 16 * half), dmin = f16_at(super + 32 + 16 * half);
      const std::byte* words = super + 64 + 32 * half;
      const __m256i w0 = bytes_at(words), w1 = bytes_at(words + 64), w2 = bytes_at(words + 128);
      const __m256i six = _mm256_set1_epi8(0x3f), high = _mm256_set1_epi8(0x30);
      put(dw, d, _mm256_and_si256(w0, six));
      put(dw + 4, d, join(low_nibbles(w2), _mm256_srli_epi16(w0, 2), high));
      put(mw, dmin, _mm256_and_si256(w1, six));
      put(mw + 4, dmin, join(high_nibbles(w2), _mm256_srli_epi16(w1, 2), high));
    }
    [[gnu::always_inline]] static void put(__m256* out, __m256 d, __m256i bytes) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const __m256i byte =
            _mm256_and_si256(_mm256_srli_epi32(bytes, 8 * i), _mm256_set1_epi32(255));
        out[i] = _mm256_mul_ps(d, _mm256_cvtepi32_ps(byte));
      }
    }
  };

  [[gnu::always_inline]] static __m256 add_block(const std::byte* block, const Scales& scales,
                                                 int b, const signed char* q, float dx,
                                                 const Side& side, __m256 acc) {
    const __m256i one = _mm256_set1_epi16(1);
    __m256i dot = _mm256_madd_epi16(pair_sums<kType, kRun>(block, 0, q), one);
    if constexpr (kRun == 4)
      dot = _mm256_add_epi32(dot, _mm256_madd_epi16(pair_sums<kType, kRun>(block, 4, q), one));
    const __m256 dwx = _mm256_mul_ps(scales.dw[b], _mm256_set1_ps(dx));
    acc = _mm256_fmadd_ps(dwx, _mm256_cvtepi32_ps(dot), acc);
    return _mm256_fnmadd_ps(scales.mw[b], _mm256_set1_ps(side.dx_sum[b]), acc);
  }

  // As Q4_1 and Q5_1 are expanded: the minimum is mw = -(dmin * m).
  static constexpr int kExpandedWeights = 64 * kGroups;
  [[gnu::always_inline]] static void expand_block(const std::byte* block, const Scales& scales,
                                                  int b, std::byte* out) {
#pragma GCC unroll 8
    for (int v = 0; v < kGroups; ++v) put(out + 64 * v, vector_at<kType>(block, v));
    auto* floats = reinterpret_cast<float*>(out + kExpandedWeights);
    _mm256_store_ps(floats, scales.dw[b]);
    _mm256_store_ps(floats + kOutputs, _mm256_xor_ps(scales.mw[b], _mm256_set1_ps(-0.0f)));
  }
};

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
                                     int half) {
      d = f16_at(tile + 32 * s + 16 * half);
      for (int b = 0; b < kBlocks; ++b) {
        const __m256i even = scale_at(super + 32 * b + 8 * half);
        const __m256i odd = scale_at(super + 32 * b + 16 + 8 * half);
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
  static constexpr int kExpandedWeights = 128 * kGroups;
  [[gnu::always_inline]] static void expand_block(const std::byte* block, const Scales& scales,
                                                  int b, std::byte* out) {
    const __m256i bias = _mm256_set1_epi8(32);
#pragma GCC unroll 8
    for (int v = 0; v < kGroups; ++v) {
      const Wide w = widen(_mm256_sub_epi8(vector_at<kType>(block, v), bias));
      const __m256i scale = scales.twice[2 * b + v / 4];
      put(out + 64 * v, _mm256_mullo_epi16(w.even, scale));
      put(out + 64 * v + kExpandedWeights / 2, _mm256_mullo_epi16(w.odd, scale));
    }
    _mm256_store_ps(reinterpret_cast<float*>(out + kExpandedWeights), scales.d);
  }
};

struct Iq4Xs {
  static constexpr DType kType = DType::iq4_xs;

  struct Side {
    [[gnu::always_inline]] Side(const quantize::Row&, long long) {}
  };

  // d * (scale - 32) of the eight blocks.
  struct Scales {
    __m256 dw[kBlocks];

    [[gnu::always_inline]] void load(const std::byte*, const std::byte* super, long long,
                                     int half) {
      const __m256 d = f16_at(super + 16 * half);
      const auto* high_at = reinterpret_cast<const __m128i*>(super + 32 + 16 * half);
      const __m256i high = _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(high_at)), 4);
      const __m256i low = bytes_at(super + 64 + 32 * half);
#pragma GCC unroll 8
      for (int b = 0; b < kBlocks; ++b) {
        const __m256i four = _mm256_and_si256(_mm256_srli_epi32(low, 4 * b), _mm256_set1_epi32(15));
        const __m256i six = join(four, _mm256_srli_epi32(high, 2 * b), _mm256_set1_epi32(0x30));
        const __m256i scale = _mm256_sub_epi32(six, _mm256_set1_epi32(32));
        dw[b] = _mm256_mul_ps(d, _mm256_cvtepi32_ps(scale));
      }
    }
  };

  [[gnu::always_inline]] static __m256 add_block(const std::byte* block, const Scales& scales,
                                                 int b, const signed char* q, float dx, const Side&,
                                                 __m256 acc) {
    __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
#pragma GCC unroll 8
    for (int v = 0; v < kGroups; ++v)
      sum[v % 2] = add_signed(vector_at<kType>(block, v), four_at(q + 4 * v), sum[v % 2]);
    const __m256 dot = _mm256_cvtepi32_ps(_mm256_add_epi32(sum[0], sum[1]));
    return _mm256_fmadd_ps(_mm256_mul_ps(scales.dw[b], _mm256_set1_ps(dx)), dot, acc);
  }

  // As IQ4_NL is expanded.
  static constexpr int kExpandedWeights = 128 * kGroups;
  [[gnu::always_inline]] static void expand_block(const std::byte* block, const Scales& scales,
                                                  int b, std::byte* out) {
#pragma GCC unroll 8
    for (int v = 0; v < kGroups; ++v) {
      const Wide w = widen(vector_at<kType>(block, v));
      put(out + 64 * v, w.even);
      put(out + 64 * v + kExpandedWeights / 2, w.odd);
    }
    _mm256_store_ps(reinterpret_cast<float*>(out + kExpandedWeights), scales.dw[b]);
  }
};

// One tile of each of the first S streams, the i-th from its beginning.
template <class Format, int S>
void one_row_tiles(const Args& a, const tiles16::Streams& streams, long long i) {
  constexpr int kBlockBytes = kquant_block_bytes(Format::kType);
  constexpr int kHeaderBytes = kquant_header_bytes(Format::kType);
  const quantize::Row x = quantize::row_at(a.x, a.k, 0);
  const long long tile_bytes = kquant_tile_bytes(Format::kType, a.k);
  const std::byte *tile[S], *at[S];
  __m256 acc[S][2];
  typename Format::Scales scales[S][2];
#pragma GCC unroll 4
  for (int s = 0; s < S; ++s) {
    tile[s] = static_cast<const std::byte*>(a.w) + (streams.first[s] + i) * tile_bytes;
    at[s] = super_at<Format::kType>(tile[s], 0, a.k);
    acc[s][0] = acc[s][1] = _mm256_setzero_ps();
  }
  for (long long super = 0; super < a.k / kSuper; ++super) {
    const typename Format::Side side(x, super * kBlocks);
    for (int s = 0; s < S; ++s, at[s - 1] += kHeaderBytes) {
      fetch<kHeaderBytes>(at[s]);
      for (int h = 0; h < 2; ++h) scales[s][h].load(tile[s], at[s], super, h);
    }
    for (int b = 0; b < kBlocks; ++b) {
      const long long block = super * kBlocks + b;
      const signed char* q = x.q + block * kBlock;
#pragma GCC unroll 4
      for (int s = 0; s < S; ++s) {
        fetch<kBlockBytes>(at[s]);
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h)
          acc[s][h] = Format::add_block(at[s] + 32 * h, scales[s][h], b, q, x.scale[block], side,
                                        acc[s][h]);
        at[s] += kBlockBytes;
      }
    }
  }
#pragma GCC unroll 4
  for (int s = 0; s < S; ++s) {
    const long long o = (streams.first[s] + i) * kOutputs;
    store(static_cast<float*>(a.y) + o, a.n - o, acc[s][0]);
    if (a.n - o > kHalf) store(static_cast<float*>(a.y) + o + kHalf, a.n - o - kHalf, acc[s][1]);
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
    typename Format::Scales scales[2];
    for (int h = 0; h < 2; ++h) scales[h].load(tile, super, s, h);
    const std::byte* block = super + kquant_header_bytes(Format::kType);
    for (int b = 0; b < kBlocks; ++b, out += out_stride) {
      for (int h = 0; h < 2; ++h) Format::expand_block(block + 32 * h, scales[h], b, out + 32 * h);
      block += kquant_block_bytes(Format::kType);
    }
  }
}

// Multiplied as `like` is, once expanded.
template <class Format>
tiles16::TileKernel kernel_like(DType like) {
  tiles16::TileKernel kernel = kernel_of(like);
  kernel.tile_bytes = [](long long k) { return kquant_tile_bytes(Format::kType, k); };
  kernel.unit_blocks = kBlocks;
  kernel.packed_rows = 0;
  kernel.one_row = one_row<Format>;
  kernel.expand = expand<Format>;
  return kernel;
}

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
