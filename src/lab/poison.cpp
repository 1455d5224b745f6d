#include "lab/poison.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

#include "tensor/format.h"

namespace millrace::lab {
namespace {

// splitmix64 (Steele, Lea and Flood, 2014): a word by its number, cheap enough for whole rings.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A random word w becomes (w & keep) | set.
struct Pattern {
  uint64_t keep = ~uint64_t{0}, set = 0;

  uint64_t word(uint64_t salt, uint64_t i) const { return (mix(salt + i) & keep) | set; }
};

// In each 16 bits: any sign, all exponent bits of bf16 and f16, a mantissa that is not 0. Two of
// them are a NaN in f32 too.
constexpr Pattern kNaNs = {.keep = 0x807f807f807f807f, .set = 0x7f817f817f817f81};

// Numbers of either sign from 1/8 to 2; of i32, indices below 256; else any bytes.
Pattern plausible(DType type) {
  switch (type) {
    case DType::f32:
      return {.keep = 0x81ffffff81ffffff, .set = 0x3e0000003e000000};
    case DType::bf16:
      return {.keep = 0x81ff81ff81ff81ff, .set = 0x3e003e003e003e00};
    case DType::f16:
      return {.keep = 0x8fff8fff8fff8fff, .set = 0x3000300030003000};
    case DType::i32:
      return {.keep = 0x000000ff000000ff};
    default:
      return {};
  }
}

Pattern pattern_of(DType type, uint64_t salt) {
  return (mix(~salt) & 1) == 0 ? kNaNs : plausible(type);
}

void put_cached(std::span<std::byte> dst, const Pattern& pattern, uint64_t salt) {
  size_t i = 0;
  for (; i + 8 <= dst.size(); i += 8) {
    const uint64_t word = pattern.word(salt, i / 8);
    std::memcpy(dst.data() + i, &word, 8);
  }
  const uint64_t word = pattern.word(salt, i / 8);
  if (i < dst.size()) std::memcpy(dst.data() + i, &word, dst.size() - i);
}

void put_cold(std::span<std::byte> dst, const Pattern& pattern, uint64_t salt) {
  for (size_t i = 0; i < dst.size(); i += sizeof(__m128i))
    _mm_stream_si128(reinterpret_cast<__m128i*>(dst.data() + i),
                     _mm_set_epi64x(static_cast<long long>(pattern.word(salt, i / 8 + 1)),
                                    static_cast<long long>(pattern.word(salt, i / 8))));
  _mm_sfence();
}

// Nobody writes there, so every pattern must be the same.
void close_gaps(const Port& port, std::span<std::byte> dst) {
  if (port.gap == 0) return;
  const size_t row = bytes_of(port.type, port.row_elems), gap = bytes_of(port.type, port.gap);
  for (size_t end = row; end <= bytes_of(port); end += row)
    std::fill_n(dst.begin() + static_cast<ptrdiff_t>(end - gap), gap, kPoison);
}

}  // namespace

uint64_t poison_salt(uint64_t seed, uint64_t pass, uint64_t entry, uint64_t port) {
  return mix(mix(mix(mix(seed) + pass) + entry) + port);
}

void poison(const Port& port, std::span<std::byte> dst, uint64_t salt, bool cold) {
  const Pattern pattern = pattern_of(port.type, salt);
  if (cold)
    put_cold(dst, pattern, salt);
  else
    put_cached(dst, pattern, salt);
  close_gaps(port, dst);
}

void poison_workspace(std::span<std::byte> workspace, uint64_t salt) {
  put_cached(workspace, pattern_of(DType::f32, salt), salt);
}

}  // namespace millrace::lab
