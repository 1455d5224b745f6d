#include "text/tokenizer/byte_level.h"

#include <array>

#include "base/utf8.h"

namespace millrace {
namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Tables {
  std::array<uint16_t, 256> chars{};
  std::array<int16_t, 0x144> bytes{};  // -1: stands for none
};

constexpr Tables make_tables() {
  Tables t;
  for (auto& byte : t.bytes) byte = -1;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const int code = stands_for_itself(byte) ? byte : next++;
    t.chars[static_cast<size_t>(byte)] = static_cast<uint16_t>(code);
    t.bytes[static_cast<size_t>(code)] = static_cast<int16_t>(byte);
  }
  return t;
}

constexpr Tables kTables = make_tables();

}  // namespace

char32_t byte_level_char(uint8_t byte) {
  return kTables.chars[byte];
}

bool decode_byte_level(std::string_view text, std::string& out) {
  out.clear();
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    if (!c.valid() || c.code >= kTables.bytes.size() || kTables.bytes[c.code] < 0) return false;
    out += static_cast<char>(kTables.bytes[c.code]);
    at += c.bytes;
  }
  return true;
}

}  // namespace millrace
