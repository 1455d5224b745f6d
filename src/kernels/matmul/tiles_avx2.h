// What the AVX2 products share: how parts of a tile and of a row are loaded, how outputs are
// stored, and the kernels of the 32-element blocks, with which K-quants are multiplied once
// expanded.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "base/isa.h"
#include "kernels/matmul/output.h"
#include "kernels/matmul/tiles.h"
#include "tensor/blocks.h"

MILLRACE_TARGET_AVX2
namespace millrace::matmul::avx2 {

inline constexpr int kHalf = 8;  // outputs of a register

const tiles16::TileKernel& kernel_of(DType type);

template <class T>
[[gnu::always_inline]] inline T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
[[gnu::always_inline]] inline __m256i bytes_at(const std::byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
[[gnu::always_inline]] inline void put(std::byte* at, __m256i v) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), v);
}
[[gnu::always_inline]] inline __m256i words_of(const std::byte* at) {
  return _mm256_set1_epi32(load<int>(at));
}
[[gnu::always_inline]] inline __m256 floats_of(const std::byte* at) {
  return _mm256_set1_ps(load<float>(at));
}
[[gnu::always_inline]] inline __m256 f16_at(const std::byte* at) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

[[gnu::always_inline]] inline __m256i low_nibbles(__m256i line) {
  return _mm256_and_si256(line, _mm256_set1_epi8(15));
}
[[gnu::always_inline]] inline __m256i high_nibbles(__m256i line) {
  return low_nibbles(_mm256_srli_epi16(line, 4));
}

// What codes of IQ4_NL and IQ4_XS stand for.
[[gnu::always_inline]] inline __m256i iq4_values(__m256i codes) {
  const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kIq4Values));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), codes);
}

// Adds the products of four signed bytes each. Two of |w| <= 128 times |x| <= 127 fit into 16 bits.
[[gnu::always_inline]] inline __m256i add_signed(__m256i w, __m256i x, __m256i sum) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

// A mask of the first `live` of eight lanes.
[[gnu::always_inline]] inline __m256i mask_of(long long live) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(live)), index);
}
[[gnu::always_inline]] inline void store(float* y, long long live, __m256 sum) {
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(kNanBits));
  sum = _mm256_blendv_ps(sum, nan, _mm256_cmp_ps(sum, sum, _CMP_UNORD_Q));
  if (live >= kHalf)
    _mm256_storeu_ps(y, sum);
  else
    _mm256_maskstore_ps(y, mask_of(live), sum);
}

// Four signed bytes of each output (or of a row) as two int16 vectors: k and k + 2, k + 1 and k
// + 3.
struct Wide {
  __m256i even, odd;
};
[[gnu::always_inline]] inline Wide widen(__m256i bytes) {
  return {_mm256_maddubs_epi16(_mm256_set1_epi16(1), bytes), _mm256_srai_epi16(bytes, 8)};
}

}  // namespace millrace::matmul::avx2
MILLRACE_TARGET_END
