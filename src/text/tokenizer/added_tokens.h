// Tokens that are found in text as a whole, before it is cut into words: those a model's publisher
// added (always found), and control tokens (found only where the text is marked as the template's
// own, so that nobody can type one).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace millrace {

struct AddedToken {
  int32_t id = -1;
  std::string text;
  bool control = false;
  bool lstrip = false;  // takes the blanks before it, or after it, along
  bool rstrip = false;
  bool single_word = false;  // not found inside a word
};

// A part of a text in which control tokens count.
struct MarkedRange {
  size_t begin = 0, end = 0;
};

class AddedTokens {
 public:
  static constexpr size_t kMaxBytes = 256;  // of one token's text: bounds the time per byte

  static Status check(const AddedToken& token);
  static Result<AddedTokens> make(std::vector<AddedToken> tokens);

  struct Hit {
    size_t begin = 0, end = 0;
    int32_t id = -1;  // -1: none
  };
  // The leftmost token at or after `from`, the longest of those; `marked` is in order and disjoint.
  Hit find(std::string_view text, size_t from, const std::vector<MarkedRange>& marked) const;
  bool empty() const { return tokens_.empty(); }

 private:
  const AddedToken* longest_at(std::string_view text, size_t at,
                               const std::vector<MarkedRange>& marked) const;
  std::vector<AddedToken> tokens_;     // by text
  std::array<uint32_t, 257> first_{};  // where the tokens of each first byte start
};

}  // namespace millrace
