// UTF-8 as Unicode 15 defines it (table 3-7): what is valid, and text from outside made fit to
// show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

// Bytes of the character that `text` begins with; 0 when it begins with none (or is empty).
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

// `text` on one line and without a byte that a terminal or a JSON reader could trip over: what is
// not UTF-8 and what is a control character becomes \xNN. What goes past `max_bytes` is cut off at
// a character and becomes "...".
std::string printable(std::string_view text, size_t max_bytes = std::string_view::npos);

}  // namespace millrace
