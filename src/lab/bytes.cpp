#include "lab/bytes.h"

#include <emmintrin.h>

#include <cstring>

namespace millrace::lab {

uint64_t hash_of(const std::byte* data, size_t bytes) {
  uint64_t h = 0x9e3779b97f4a7c15;
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    uint64_t word;
    std::memcpy(&word, data + i, 8);
    h = (h ^ word) * 0xff51afd7ed558ccd;
    h ^= h >> 32;
  }
  for (; i < bytes; ++i) h = (h ^ static_cast<uint64_t>(data[i])) * 0xff51afd7ed558ccd;
  return h ^ (h >> 29);
}

void stream_copy(std::byte* dst, const std::byte* src, size_t bytes) {
  for (size_t i = 0; i < bytes; i += sizeof(__m128i))
    _mm_stream_si128(reinterpret_cast<__m128i*>(dst + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i)));
  _mm_sfence();
}

}  // namespace millrace::lab
