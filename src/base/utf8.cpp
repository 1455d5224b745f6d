#include "base/utf8.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

namespace millrace {
namespace {

struct Lead {
  size_t bytes;     // of the whole character; 0: no character starts with this byte
  uint8_t lo, hi;   // what the second byte may be: neither overlong, surrogate nor past U+10FFFF
  uint8_t payload;  // the lead byte's own bits
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0, byte};
  if (byte < 0xC2 || byte > 0xF4) return {0, 0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF, static_cast<uint8_t>(byte & 0x1F)};
  if (byte < 0xF0) {
    const uint8_t lo = byte == 0xE0 ? 0xA0 : 0x80, hi = byte == 0xED ? 0x9F : 0xBF;
    return {3, lo, hi, static_cast<uint8_t>(byte & 0x0F)};
  }
  const uint8_t lo = byte == 0xF0 ? 0x90 : 0x80, hi = byte == 0xF4 ? 0x8F : 0xBF;
  return {4, lo, hi, static_cast<uint8_t>(byte & 0x07)};
}

size_t ascii_bytes(std::string_view text, size_t at) {
  const size_t start = at;
  while (at + 8 <= text.size()) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if (word & 0x8080808080808080u) break;
    at += 8;
  }
  while (at < text.size() && static_cast<uint8_t>(text[at]) < 0x80) ++at;
  return at - start;
}

unsigned char at(std::string_view text, size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// U+0000 to U+001F, U+007F, and U+0080 to U+009F, which some terminals obey too. And what turns the
// direction of the text around it (U+202A to U+202E, U+2066 to U+2069): a line could read as
// another.
bool is_control(std::string_view character) {
  const unsigned char c = at(character, 0);
  if (c < 0x20 || c == 0x7f || (c == 0xc2 && at(character, 1) < 0xa0)) return true;
  if (c != 0xe2 || character.size() != 3) return false;
  const unsigned char d = at(character, 1), e = at(character, 2);
  return (d == 0x80 && e >= 0xaa && e <= 0xae) || (d == 0x81 && e >= 0xa6 && e <= 0xa9);
}

}  // namespace

Utf8Char decode_utf8(std::string_view text, size_t at) {
  using State = Utf8Char::State;
  const Lead lead = lead_of(static_cast<uint8_t>(text[at]));
  if (lead.bytes == 0) return {kReplacement, 1, State::invalid};
  char32_t code = lead.payload;
  for (size_t i = 1; i < lead.bytes; ++i) {
    if (at + i >= text.size()) return {kReplacement, i, State::incomplete};
    const uint8_t byte = static_cast<uint8_t>(text[at + i]);
    const uint8_t lo = i == 1 ? lead.lo : 0x80, hi = i == 1 ? lead.hi : 0xBF;
    if (byte < lo || byte > hi) return {kReplacement, i, State::invalid};
    code = (code << 6) | (byte & 0x3F);
  }
  return {code, lead.bytes, State::valid};
}

void append_utf8(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | (code >> 6));
  } else {
    if (code < 0x10000) {
      put(0xE0 | (code >> 12));
    } else {
      put(0xF0 | (code >> 18));
      put(0x80 | ((code >> 12) & 0x3F));
    }
    put(0x80 | ((code >> 6) & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

size_t first_broken_byte(std::string_view text) {
  size_t at = 0;
  while ((at += ascii_bytes(text, at)) < text.size()) {
    const Utf8Char c = decode_utf8(text, at);
    if (!c.valid()) return at;
    at += c.bytes;
  }
  return text.size();
}

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const Utf8Char c = decode_utf8(text, 0);
  return c.valid() ? c.bytes : 0;
}

bool is_utf8(std::string_view text) {
  return first_broken_byte(text) == text.size();
}

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const size_t valid = utf8_length(text);
    const std::string_view character = text.substr(0, valid == 0 ? 1 : valid);
    std::string shown(character);
    if (valid == 0 || is_control(character)) {
      shown.clear();
      for (size_t i = 0; i < character.size(); ++i)
        shown += fmt::format("\\x{:02x}", at(character, i));
    }
    if (shown.size() > max_bytes - out.size()) return out + "...";
    out += shown;
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace millrace
