#include "kernels/topk/radix.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace millrace::topk {
namespace {

constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;

struct Range {
  int32_t least, largest;
};

Range range_of(const Candidate* c, long long n) {
  Range range = {c[0].key, c[0].key};
  for (long long i = 1; i < n; ++i) {
    range.least = std::min(range.least, c[i].key);
    range.largest = std::max(range.largest, c[i].key);
  }
  return range;
}

// Both keys are above the least integer, so the unsigned difference is the true distance.
uint32_t distance(int32_t largest, int32_t key) {
  return static_cast<uint32_t>(largest) - static_cast<uint32_t>(key);
}

void scatter(const Candidate* from, Candidate* to, long long n, int32_t largest, int shift) {
  uint32_t slot[kDigits] = {};
  for (long long i = 0; i < n; ++i)
    ++slot[(distance(largest, from[i].key) >> shift) & (kDigits - 1)];
  uint32_t total = 0;
  for (uint32_t& s : slot) total += std::exchange(s, total);
  for (long long i = 0; i < n; ++i)
    to[slot[(distance(largest, from[i].key) >> shift) & (kDigits - 1)]++] = from[i];
}

}  // namespace

Candidate* radix_sort(Candidate* from, Candidate* to, long long n) {
  if (n == 0) return from;
  const Range range = range_of(from, n);
  const int bits = std::bit_width(distance(range.largest, range.least));
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    scatter(from, to, n, range.largest, shift);
    std::swap(from, to);
  }
  return from;
}

}  // namespace millrace::topk
