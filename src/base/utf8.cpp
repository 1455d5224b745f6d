#include "base/utf8.h"

#include <fmt/format.h>

namespace millrace {
namespace {

struct Lead {
  size_t length;
  unsigned char second_lo,
      second_hi;  // the second byte's range excludes overlong forms, surrogates
};

Lead lead_of(unsigned char c) {
  if (c < 0x80) return {1, 0, 0};
  if (c < 0xc2 || c > 0xf4) return {0, 0, 0};
  if (c < 0xe0) return {2, 0x80, 0xbf};
  if (c < 0xf0)
    return {3, static_cast<unsigned char>(c == 0xe0 ? 0xa0 : 0x80),
            static_cast<unsigned char>(c == 0xed ? 0x9f : 0xbf)};
  return {4, static_cast<unsigned char>(c == 0xf0 ? 0x90 : 0x80),
          static_cast<unsigned char>(c == 0xf4 ? 0x8f : 0xbf)};
}

unsigned char at(std::string_view text, size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// U+0000 to U+001F, U+007F, and U+0080 to U+009F, which some terminals obey too.
bool is_control(std::string_view character) {
  const unsigned char c = at(character, 0);
  return c < 0x20 || c == 0x7f || (c == 0xc2 && at(character, 1) < 0xa0);
}

}  // namespace

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const Lead lead = lead_of(at(text, 0));
  if (lead.length > text.size()) return 0;
  for (size_t i = 1; i < lead.length; ++i) {
    const unsigned char c = at(text, i);
    if (i == 1 ? c < lead.second_lo || c > lead.second_hi : (c & 0xc0) != 0x80) return 0;
  }
  return lead.length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t n = utf8_length(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
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
