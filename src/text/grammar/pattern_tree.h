// A parsed pattern: a tree in one vector, children before their parents.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/grammar/char_set.h"

namespace millrace::grammar {

struct PatternNode {
  enum class Kind : unsigned char { chars, sequence, alternatives, repeat, begin, end };
  Kind kind;
  CharSet chars{};
  std::vector<int> children{};  // a repeat has one
  int min = 0, max = 0;         // of a repeat; max -1: without end
};

struct PatternTree {
  std::vector<PatternNode> nodes;
  int root = -1;
  std::string relaxed;
};

// Repeats beyond this are counted no further; beyond the lower one where that is still too much.
inline constexpr int kMaxRepeat = 1000, kFewRepeats = 16;

Result<PatternTree> parse_pattern(std::string_view pattern, int max_repeat = kMaxRepeat);

}  // namespace millrace::grammar
