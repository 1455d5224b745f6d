#include <immintrin.h>

#include <bit>

#include "base/isa.h"
#include "kernels/matmul/floats.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul/output.h"

MILLRACE_TARGET_AVX2
namespace millrace::matmul::avx2 {
namespace {

using Byte = unsigned char;

// 8 of a tile's 16 weights at one k.
struct F32 {
  static constexpr int kBytes = 64;
  static __m256 at(const Byte* w, int half) {
    return _mm256_load_ps(reinterpret_cast<const float*>(w) + 8 * half);
  }
};
struct F16 {
  static constexpr int kBytes = 32;
  static __m256 at(const Byte* w, int half) {
    return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(w) + half));
  }
};
struct Bf16 {
  static constexpr int kBytes = 32;
  static __m256 at(const Byte* w, int half) {
    const __m128i bits = _mm_load_si128(reinterpret_cast<const __m128i*>(w) + half);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
};

__m256i mask_of(int live) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(live), index);
}

__m256 canonical(__m256 v) {
  const __m256 nan = _mm256_set1_ps(std::bit_cast<float>(kNanBits));
  return _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

// A tile is two vectors: kVectors is twice the tiles.
template <class Weight, int kRows, int kVectors>
struct Sums {
  __m256 acc[kRows][kVectors];

  void load(const FloatBlock& b) {
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const __m256i live = mask_of(b.first ? 0 : b.live - 8 * v);
        acc[r][v] = _mm256_maskload_ps(b.y + r * b.y_stride + 8 * v, live);
      }
  }
  void store(const FloatBlock& b) const {
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        _mm256_maskstore_ps(b.y + r * b.y_stride + 8 * v, mask_of(b.live - 8 * v),
                            canonical(acc[r][v]));
  }
  void add(const FloatBlock& b, const Byte* w, const float* x) {
    __m256 weight[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) weight[v] = Weight::at(w + v / 2 * b.tile_bytes, v % 2);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m256 value = _mm256_set1_ps(x[r * b.x_stride]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[r][v] = _mm256_fmadd_ps(value, weight[v], acc[r][v]);
    }
  }
};

template <class Weight>
struct Kernel {
  static constexpr int kMaxRows = 6, kMaxTiles = 2;

  // One row takes two tiles at once for the sake of more chains; more rows have no registers left.
  template <int kRows, int kTiles>
  static void block(FloatBlock b) {
    constexpr int kStep = kRows == 1 ? kTiles : 1;
    for (int t = 0; t < kTiles; t += kStep) {
      add<kRows, kStep>(b);
      b.w += kStep * b.tile_bytes;
      b.y += kStep * kFloatTile;
      b.live -= kStep * static_cast<int>(kFloatTile);
    }
  }

  template <int kRows, int kTiles>
  static void add(const FloatBlock& b) {
    Sums<Weight, kRows, 2 * kTiles> sums;
    sums.load(b);
    const Byte* w = b.w;
    const float* x = b.x;
    long long i = 0;
    for (; i + 4 <= b.n_k; i += 4) {
      for (int t = 0; kRows == 1 && t < kTiles; ++t)
        fetch_ahead<4 * Weight::kBytes>(w + t * b.tile_bytes);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j, w += Weight::kBytes) sums.add(b, w, x++);
    }
    for (; i < b.n_k; ++i, w += Weight::kBytes) sums.add(b, w, x++);
    sums.store(b);
  }
};

}  // namespace

Status run_floats(const Args& a, Exec& exec) {
  if (a.w_type == DType::f32) return walk_floats<Kernel<F32>>(a, exec);
  if (a.w_type == DType::f16) return walk_floats<Kernel<F16>>(a, exec);
  return walk_floats<Kernel<Bf16>>(a, exec);
}

}  // namespace millrace::matmul::avx2
MILLRACE_TARGET_END
