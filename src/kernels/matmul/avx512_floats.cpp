#include <immintrin.h>

#include <bit>

#include "base/isa.h"
#include "kernels/matmul/floats.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul/output.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

MILLRACE_TARGET_AVX512
namespace millrace::matmul::avx512 {
namespace {

using Byte = unsigned char;

// 16 weights at one k.
struct F32 {
  static constexpr int kBytes = 64;
  static __m512 at(const Byte* w) { return _mm512_load_ps(w); }
};
struct F16 {
  static constexpr int kBytes = 32;
  static __m512 at(const Byte* w) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(w)));
  }
};
struct Bf16 {
  static constexpr int kBytes = 32;
  static __m512 at(const Byte* w) {
    const __m256i bits = _mm256_load_si256(reinterpret_cast<const __m256i*>(w));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
};

__mmask16 mask_of(int live) {
  return static_cast<__mmask16>(live >= 16 ? 0xffff : live <= 0 ? 0 : (1u << live) - 1);
}

__m512 canonical(__m512 v) {
  const __m512 nan = _mm512_set1_ps(std::bit_cast<float>(kNanBits));
  return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);
}

template <class Weight, int kRows, int kTiles>
struct Sums {
  __m512 acc[kRows][kTiles];

  void load(const FloatBlock& b) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int t = 0; t < kTiles; ++t) {
        const __mmask16 live = b.first ? __mmask16{0} : mask_of(b.live - 16 * t);
        acc[r][t] = _mm512_maskz_loadu_ps(live, b.y + r * b.y_stride + 16 * t);
      }
  }
  void store(const FloatBlock& b) const {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int t = 0; t < kTiles; ++t)
        _mm512_mask_storeu_ps(b.y + r * b.y_stride + 16 * t, mask_of(b.live - 16 * t),
                              canonical(acc[r][t]));
  }
  void add(const FloatBlock& b, const Byte* w, const float* x) {
    __m512 weight[kTiles];
#pragma GCC unroll 4
    for (int t = 0; t < kTiles; ++t) weight[t] = Weight::at(w + t * b.tile_bytes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int t = 0; t < kTiles; ++t)
        acc[r][t] = _mm512_fmadd_ps(_mm512_set1_ps(x[r * b.x_stride]), weight[t], acc[r][t]);
  }
};

template <class Weight>
struct Kernel {
  static constexpr int kMaxRows = 8, kMaxTiles = 2;

  template <int kRows, int kTiles>
  static void block(const FloatBlock& b) {
    Sums<Weight, kRows, kTiles> sums;
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

}  // namespace millrace::matmul::avx512
MILLRACE_TARGET_END
