#include <immintrin.h>

#include <cstring>

#include "base/isa.h"
#include "base/small_float.h"
#include "kernels/embedding/op.h"
#include "tensor/blocks.h"
#include "tensor/codec.h"
#include "tensor/format.h"

MILLRACE_TARGET_AVX2
namespace millrace::embedding::avx2 {
namespace {

__m256i load32(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

__m128i load16(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}

// Sixteen bytes as 32 codes: the low nibbles, then the high ones.
__m256i nibbles(const uint8_t* qs) {
  const __m128i both = load16(qs);
  return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(both, 4), both), _mm256_set1_epi8(15));
}

// 32 bits as 32 bytes of 0 or 16.
__m256i fifth_bits(const uint8_t* qh) {
  int bits;
  std::memcpy(&bits, qh, 4);
  const __m256i byte_of = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                           2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit_of = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), byte_of);
  const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit_of), bit_of);
  return _mm256_and_si256(is_set, _mm256_set1_epi8(16));
}

// scale * q for 16 int8.
void put16(float* y, __m128i q, __m256 scale) {
  _mm256_storeu_ps(y, _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q))));
  const __m128i upper = _mm_srli_si128(q, 8);
  _mm256_storeu_ps(y + 8, _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(upper))));
}

void put32(float* y, __m256i q, __m256 scale) {
  put16(y, _mm256_castsi256_si128(q), scale);
  put16(y + 16, _mm256_extracti128_si256(q, 1), scale);
}

void add32(float* y, __m256 min) {
  for (int i = 0; i < 32; i += 8)
    _mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_loadu_ps(y + i), min));
}

__m256 splat_f16(uint16_t bits) {
  return _mm256_cvtph_ps(_mm_set1_epi16(static_cast<short>(bits)));
}

void put(const BlockQ8_0& b, float* y) {
  put32(y, load32(b.qs), splat_f16(b.d));
}

void put(const BlockQ4_0& b, float* y) {
  put32(y, _mm256_sub_epi8(nibbles(b.qs), _mm256_set1_epi8(8)), splat_f16(b.d));
}

void put(const BlockQ4_1& b, float* y) {
  put32(y, nibbles(b.qs), splat_f16(b.d));
  add32(y, splat_f16(b.m));
}

void put(const BlockQ5_0& b, float* y) {
  const __m256i code = _mm256_or_si256(nibbles(b.qs), fifth_bits(b.qh));
  put32(y, _mm256_sub_epi8(code, _mm256_set1_epi8(16)), splat_f16(b.d));
}

void put(const BlockQ5_1& b, float* y) {
  put32(y, _mm256_or_si256(nibbles(b.qs), fifth_bits(b.qh)), splat_f16(b.d));
  add32(y, splat_f16(b.m));
}

// 32 elements of Q6_K from the low nibbles of `low` and the low two bits of `high`'s bytes.
void put_q6(float* y, __m256i low, __m256i high, const int8_t* scales, __m256 d) {
  const __m256i top = _mm256_slli_epi16(_mm256_and_si256(high, _mm256_set1_epi8(3)), 4);
  const __m256i code = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi8(15)), top);
  const __m256i q = _mm256_sub_epi8(code, _mm256_set1_epi8(32));
  put16(y, _mm256_castsi256_si128(q), _mm256_mul_ps(d, _mm256_set1_ps(scales[0])));
  put16(y + 16, _mm256_extracti128_si256(q, 1), _mm256_mul_ps(d, _mm256_set1_ps(scales[1])));
}

void put(const BlockQ6_K& b, float* y) {
  const __m256 d = splat_f16(b.d);
  for (int half = 0; half < 2; ++half) {
    const __m256i low = load32(b.ql + 64 * half), next = load32(b.ql + 64 * half + 32);
    const __m256i high = load32(b.qh + 32 * half);
    const int8_t* scales = b.scales + 8 * half;
    float* out = y + 128 * half;
    put_q6(out, low, high, scales, d);
    put_q6(out + 32, next, _mm256_srli_epi16(high, 2), scales + 2, d);
    put_q6(out + 64, _mm256_srli_epi16(low, 4), _mm256_srli_epi16(high, 4), scales + 4, d);
    put_q6(out + 96, _mm256_srli_epi16(next, 4), _mm256_srli_epi16(high, 6), scales + 6, d);
  }
}

__m256i iq4_values(const uint8_t* qs) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load16(kIq4Values)), nibbles(qs));
}

void put(const BlockIq4Nl& b, float* y) {
  put32(y, iq4_values(b.qs), splat_f16(b.d));
}

void put(const BlockIq4Xs& b, float* y) {
  const __m256 d = splat_f16(b.d);
  for (int g = 0; g < 8; ++g) {
    const int low = b.scales_l[g / 2] >> 4 * (g % 2) & 15, high = b.scales_h[g / 4] >> 2 * (g % 4);
    const auto scale = static_cast<float>((low | (high & 3) << 4) - 32);
    put32(y + 32 * g, iq4_values(b.qs + 16 * g), _mm256_mul_ps(d, _mm256_set1_ps(scale)));
  }
}

template <class Block, int elems>
void put_blocks(const void* row, float* y, long long n) {
  const auto* blocks = static_cast<const Block*>(row);
  for (long long b = 0; b < n / elems; ++b) put(blocks[b], y + b * elems);
}

void put_f32(const void* row, float* y, long long n) {
  std::memcpy(y, row, static_cast<size_t>(n) * 4);
}

void put_f16(const void* row, float* y, long long n) {
  const auto* x = static_cast<const uint16_t*>(row);
  long long i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_cvtph_ps(load16(x + i)));
  for (; i < n; ++i) y[i] = f16_to_f32(x[i]);
}

void put_bf16(const void* row, float* y, long long n) {
  const auto* x = static_cast<const uint16_t*>(row);
  long long i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(load16(x + i)), 16);
    _mm256_storeu_ps(y + i, _mm256_castsi256_ps(wide));
  }
  for (; i < n; ++i) y[i] = bf16_to_f32(x[i]);
}

void scale_row(float* y, long long n, float scale) {
  const __m256 s = _mm256_set1_ps(scale);
  long long i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(y + i), s));
  for (; i < n; ++i) y[i] *= scale;
}

using Put = void (*)(const void* row, float* y, long long n);

// Null: the codec decodes it. Those formats are no model's embedding by default.
Put put_of(DType type) {
  switch (type) {
    case DType::f32:
      return put_f32;
    case DType::f16:
      return put_f16;
    case DType::bf16:
      return put_bf16;
    case DType::q8_0:
      return put_blocks<BlockQ8_0, 32>;
    case DType::q4_0:
      return put_blocks<BlockQ4_0, 32>;
    case DType::q4_1:
      return put_blocks<BlockQ4_1, 32>;
    case DType::q5_0:
      return put_blocks<BlockQ5_0, 32>;
    case DType::q5_1:
      return put_blocks<BlockQ5_1, 32>;
    case DType::q6_k:
      return put_blocks<BlockQ6_K, 256>;
    case DType::iq4_nl:
      return put_blocks<BlockIq4Nl, 32>;
    case DType::iq4_xs:
      return put_blocks<BlockIq4Xs, 256>;
    default:
      return nullptr;
  }
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  const Put put_row = put_of(a.table_type);
  const auto row_bytes = static_cast<long long>(bytes_of(a.table_type, a.n));
  const Share rows = exec.rows(a.n_rows);
  for (long long r = rows.begin; r < rows.end; ++r) {
    const long long id = a.ids[r];
    float* y = a.y + r * a.n;
    if (id < 0 || id >= a.n_vocab) {
      std::memset(y, 0, static_cast<size_t>(a.n) * 4);
      continue;
    }
    const char* row = static_cast<const char*>(a.table) + id * row_bytes;
    if (put_row != nullptr)
      put_row(row, y, a.n);
    else
      decode(a.table_type, row, y, a.n);
    if (a.scale != 1) scale_row(y, a.n, a.scale);  // found in the first-level cache
  }
  return {};
}

}  // namespace millrace::embedding::avx2
MILLRACE_TARGET_END
