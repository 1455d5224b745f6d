// GPT-2's way to write any byte as a printable character: the visible ones of Latin-1 stand for
// themselves, the other 68 for U+0100 onwards. Byte-level vocabularies spell their tokens in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

char32_t byte_level_char(uint8_t byte);

// The bytes that `text` spells; false when it holds a character that stands for none.
bool decode_byte_level(std::string_view text, std::string& out);

}  // namespace millrace
