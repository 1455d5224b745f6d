// Regular expressions, as JSON Schema's `pattern` has them (ECMAScript's), into Lexemes. Anchors,
// classes, groups, alternation, repeats and \d \w \s \uNNNN are known; whatever is not regular
// (look-around, back-references) or not known is an error that says so. Linear in time by nature:
// there is nothing to backtrack.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/grammar/lexeme.h"

namespace millrace::grammar {

struct Pattern {
  std::optional<Lexeme> lexeme;  // nothing: no text matches
  std::string relaxed;           // what was made wider than it says; empty: nothing was
};

// `work` grows by what compiling took; a million are some 10 ms.
// The JSON strings, quotes included, whose text the pattern is found in. Characters are spelled in
// one way (Spelling::json).
Result<Pattern> string_pattern(std::string_view pattern, size_t& work);

// The bytes that match the pattern from their first to their last; for patterns of ours.
Result<Pattern> whole_pattern(std::string_view pattern);

}  // namespace millrace::grammar
