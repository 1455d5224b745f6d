// A set of Unicode characters (surrogates are none), as sorted ranges: the classes of a pattern.
#pragma once

#include <cstdint>
#include <vector>

namespace millrace::grammar {

struct CharRange {
  uint32_t lo = 0, hi = 0;  // both included
};

class CharSet {
 public:
  static constexpr uint32_t kLast = 0x10FFFF;

  void add(uint32_t lo, uint32_t hi) { ranges_.push_back({lo, hi}); }
  void add(const CharSet& other);
  // Sorted, joined, without surrogates.
  void normalize();
  CharSet complement() const;
  const std::vector<CharRange>& ranges() const { return ranges_; }

  static CharSet of(uint32_t lo, uint32_t hi);
  static CharSet digits();
  static CharSet word();
  static CharSet space();
  static CharSet any();
  static CharSet not_newline();

 private:
  std::vector<CharRange> ranges_;
};

}  // namespace millrace::grammar
