// The pre-tokeniser: text cut into words that are encoded one by one, by a list of steps as
// tokenizer.json states them. Each step sees every word of the step before alone, so an expression
// cannot look beyond it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer/regex.h"

namespace millrace {

struct SplitStep {
  // What becomes of the matches: words of their own, dropped, or joined with a neighbour;
  // contiguous matches make one word.
  enum class Behavior : unsigned char {
    isolated,
    removed,
    merged_with_previous,
    merged_with_next,
    contiguous
  };
  std::string pattern;   // in Oniguruma's syntax
  bool literal = false;  // the pattern is plain text
  Behavior behavior = Behavior::isolated;
  bool invert = false;  // what lies between matches is the match

  bool operator==(const SplitStep&) const = default;
};

class Splitter {
 public:
  static Result<Splitter> make(const std::vector<SplitStep>& steps);

  // `text` is valid UTF-8 of less than 4 GiB; `words` are views into it, none of them empty.
  Status split(std::string_view text, Matcher& matcher, std::vector<std::string_view>& words) const;
  bool empty() const { return stages_.empty(); }

 private:
  struct Stage {
    Regex regex;
    std::string literal;
    SplitStep::Behavior behavior = SplitStep::Behavior::isolated;
    bool invert = false;
  };
  std::vector<Stage> stages_;
};

}  // namespace millrace
