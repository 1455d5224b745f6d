#include "text/grammar/nfa.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace millrace::grammar {

namespace {

constexpr std::string_view kShortEscapes = "\b\t\n\f\r";
constexpr std::string_view kShortLetters = "btnfr";

// The largest range that begins at `lo` and whose UTF-8 is one sequence of byte ranges.
uint32_t end_of_run(uint32_t lo, uint32_t hi) {
  constexpr std::array<uint32_t, 4> kLengths = {0x7F, 0x7FF, 0xFFFF, 0x10FFFF};
  for (const uint32_t last : kLengths)
    if (lo <= last) {
      hi = std::min(hi, last);
      break;
    }
  if (lo < 0x80) return hi;
  // Trailing bytes run over all of their 64 values or stay within one value of those before them.
  for (uint32_t bits = 6; bits <= 18; bits += 6) {
    const uint32_t mask = (1u << bits) - 1;
    if ((lo & ~mask) == (hi & ~mask)) continue;
    if ((lo & mask) != 0) return lo | mask;
    if ((hi & mask) != mask) hi = (hi & ~mask) - 1;
  }
  return hi;
}

}  // namespace

int32_t Nfa::add(Node node) {
  nodes_.push_back(node);
  return static_cast<int32_t>(nodes_.size() - 1);
}

int32_t Nfa::text(std::string_view text, int32_t next) {
  for (size_t i = text.size(); i > 0; --i) {
    const auto byte = static_cast<uint8_t>(text[i - 1]);
    next = bytes(byte, byte, next);
  }
  return next;
}

int32_t Nfa::utf8(uint32_t lo, uint32_t hi, int32_t next) {
  int32_t any = -1;
  while (lo <= hi) {
    const uint32_t last = end_of_run(lo, hi);
    std::string first_text, last_text;
    append_utf8(first_text, lo);
    append_utf8(last_text, last);
    int32_t run = next;
    for (size_t i = first_text.size(); i > 0; --i)
      run = bytes(static_cast<uint8_t>(first_text[i - 1]), static_cast<uint8_t>(last_text[i - 1]),
                  run);
    any = either(any, run);
    lo = last + 1;
  }
  return any;
}

// \u00XX of control characters, which lie within one value of the first hexadecimal digit.
int32_t Nfa::escaped(uint32_t lo, uint32_t hi, int32_t next) {
  const auto digits = [&](char zero, uint32_t from, uint32_t to) {
    return bytes(static_cast<uint8_t>(zero + from), static_cast<uint8_t>(zero + to), next);
  };
  const uint32_t a = lo & 15, b = hi & 15;
  int32_t last = -1;
  if (a <= 9) last = digits('0', a, std::min(b, 9u));
  if (b >= 10) {
    last = either(last, digits('a', std::max(a, 10u) - 10, b - 10));
    last = either(last, digits('A', std::max(a, 10u) - 10, b - 10));
  }
  const auto high = static_cast<uint8_t>('0' + (lo >> 4));
  return text("\\u00", bytes(high, high, last));
}

int32_t Nfa::control(uint32_t lo, uint32_t hi, int32_t next) {
  int32_t any = -1;
  for (size_t i = 0; i < kShortEscapes.size(); ++i) {
    const auto c = static_cast<uint32_t>(kShortEscapes[i]);
    if (lo <= c && c <= hi) any = either(any, text(std::string{'\\', kShortLetters[i]}, next));
  }
  if (lo < 16) any = either(any, escaped(lo, std::min(hi, 15u), next));
  if (hi >= 16) any = either(any, escaped(std::max(lo, 16u), hi, next));
  return any;
}

int32_t Nfa::chars(const CharSet& set, Spelling spelling, int32_t next) {
  CharSet sorted = set;
  sorted.normalize();
  int32_t any = -1;
  for (auto [lo, hi] : sorted.ranges()) {
    if (full()) return any;
    if (spelling == Spelling::json) {
      if (lo < 0x20) any = either(any, control(lo, std::min(hi, 0x1Fu), next));
      lo = std::max(lo, 0x20u);
      for (const uint32_t c : {uint32_t{'"'}, uint32_t{'\\'}}) {
        if (lo > c || hi < c) continue;
        any = either(any, text(std::string{'\\', static_cast<char>(c)}, next));
        if (lo < c) any = either(any, utf8(lo, c - 1, next));
        lo = c + 1;
      }
    }
    if (lo <= hi) any = either(any, utf8(lo, hi, next));
  }
  return any;
}

}  // namespace millrace::grammar
