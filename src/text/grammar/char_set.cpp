#include "text/grammar/char_set.h"

#include <algorithm>

namespace millrace::grammar {

namespace {

constexpr uint32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

void push_without_surrogates(std::vector<CharRange>& out, uint32_t lo, uint32_t hi) {
  if (lo < kFirstSurrogate) out.push_back({lo, std::min(hi, kFirstSurrogate - 1)});
  if (hi > kLastSurrogate) out.push_back({std::max(lo, kLastSurrogate + 1), hi});
}

}  // namespace

void CharSet::add(const CharSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
}

void CharSet::normalize() {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const CharRange& a, const CharRange& b) { return a.lo < b.lo; });
  std::vector<CharRange> joined;
  for (const CharRange& range : ranges_) {
    if (range.lo > range.hi) continue;
    if (!joined.empty() && range.lo <= joined.back().hi + 1)
      joined.back().hi = std::max(joined.back().hi, range.hi);
    else
      joined.push_back(range);
  }
  ranges_.clear();
  for (const CharRange& range : joined) push_without_surrogates(ranges_, range.lo, range.hi);
}

CharSet CharSet::complement() const {
  CharSet sorted = *this;
  sorted.normalize();
  CharSet out;
  uint32_t from = 0;
  for (const CharRange& range : sorted.ranges_) {
    if (range.lo > from) out.add(from, range.lo - 1);
    from = range.hi + 1;
  }
  if (from <= kLast) out.add(from, kLast);
  out.normalize();
  return out;
}

CharSet CharSet::of(uint32_t lo, uint32_t hi) {
  CharSet out;
  out.add(lo, hi);
  return out;
}

CharSet CharSet::digits() {
  return of('0', '9');
}

CharSet CharSet::word() {
  CharSet out = digits();
  out.add('A', 'Z');
  out.add('a', 'z');
  out.add('_', '_');
  return out;
}

// As ECMAScript has it.
CharSet CharSet::space() {
  CharSet out = of('\t', '\r');
  for (const uint32_t c :
       {0x20u, 0xA0u, 0x1680u, 0x2028u, 0x2029u, 0x202Fu, 0x205Fu, 0x3000u, 0xFEFFu})
    out.add(c, c);
  out.add(0x2000, 0x200A);
  out.normalize();
  return out;
}

CharSet CharSet::any() {
  CharSet out = of(0, kLast);
  out.normalize();
  return out;
}

CharSet CharSet::not_newline() {
  CharSet out = of('\n', '\n');
  out.add('\r', '\r');
  out.add(0x2028, 0x2029);
  return out.complement();
}

}  // namespace millrace::grammar
