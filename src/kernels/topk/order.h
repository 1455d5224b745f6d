// The order that selection uses, as one integer per float: a larger key comes first, and equal keys
// go by the lower index. It is IEEE's total order (-0 just below +0) with one change: every NaN is
// below -Inf, so that a NaN is chosen only when nothing else is left. Sampling wants exactly that.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace millrace::topk {

// One above the least integer: `key - 1` and a pad below every key both stay representable.
inline constexpr int32_t kNanKey = std::numeric_limits<int32_t>::min() + 1;

// Its own inverse on everything but NaN.
inline int32_t flip(int32_t bits) {
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

inline int32_t key_of(float x) {
  return x != x ? kNanKey : flip(std::bit_cast<int32_t>(x));
}

inline float value_of(int32_t key) {
  return std::bit_cast<float>(flip(key));
}

// An element under selection, and the order among them: before(a, b) when a comes first.
struct Candidate {
  int32_t key;
  int32_t index;
};

inline bool before(const Candidate& a, const Candidate& b) {
  return a.key != b.key ? a.key > b.key : a.index < b.index;
}

}  // namespace millrace::topk
