// UTF-8 as Unicode 15 defines it (table 3-7): what is valid, which characters it holds, and text
// from outside made fit to show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

inline constexpr char32_t kReplacement = 0xFFFD;

struct Utf8Char {
  enum class State : unsigned char { valid, invalid, incomplete };
  char32_t code = kReplacement;
  // valid: the character's; invalid: the longest part that could have begun one (1 to 3);
  // incomplete: what is left of the text, which could still become one.
  size_t bytes = 1;
  State state = State::invalid;

  bool valid() const { return state == State::valid; }
};

// The character that starts at text[at]; at < text.size().
Utf8Char decode_utf8(std::string_view text, size_t at);

void append_utf8(std::string& out, char32_t code);

// The first byte that is not part of a whole, valid character; text.size() when all are.
size_t first_broken_byte(std::string_view text);

// Bytes of the character that `text` begins with; 0 when it begins with none (or is empty).
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

// `text` on one line and without a byte that a terminal or a JSON reader could trip over: what is
// not UTF-8 and what is a control character becomes \xNN. What goes past `max_bytes` is cut off at
// a character and becomes "...".
std::string printable(std::string_view text, size_t max_bytes = std::string_view::npos);

}  // namespace millrace
