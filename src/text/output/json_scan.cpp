#include "text/output/json_scan.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <iterator>
#include <utility>

#include "base/utf8.h"

namespace millrace {

JsonScan::Found JsonScan::push_in_string(char c) {
  if (escaped_) {
    escaped_ = false;
  } else if (c == '\\') {
    escaped_ = true;
  } else if (c == '"') {
    in_string_ = false;
    if (depth_ == 0) return Found::last;
  }
  return Found::more;
}

JsonScan::Found JsonScan::push(char c) {
  if (in_string_) return push_in_string(c);
  const bool at_top = depth_ == 0;
  if (c == '}' || c == ']') {
    if (at_top) return Found::past;
    return --depth_ == 0 ? Found::last : Found::more;
  }
  if (at_top && scalar_ && (is_space(c) || c == '"' || c == '{' || c == '[')) return Found::past;
  if (at_top && (c == ',' || c == ':')) return Found::past;
  if (c == '{' || c == '[')
    ++depth_;
  else if (c == '"')
    in_string_ = true;
  else if (at_top && !is_space(c))
    scalar_ = true;
  return Found::more;
}

bool JsonUnescape::push(char c, std::string& out) {
  if (!escape_.empty()) return push_escape(c, out);
  if (c == '\\') {
    escape_ = c;
    return true;
  }
  give_up(out);
  if (c == '"') return false;
  out += c;
  return true;
}

// What is held was no escape, or half a pair.
void JsonUnescape::give_up(std::string& out) {
  out += pair_;
  out += escape_;
  pair_.clear();
  escape_.clear();
  surrogate_ = 0;
}

bool JsonUnescape::push_escape(char c, std::string& out) {
  if (escape_.size() >= 2) return push_digit(c, out);
  escape_ += c;
  if (c == 'u') return true;
  constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  const size_t i = kNames.find(c);
  if (i != std::string_view::npos) escape_.clear();
  give_up(out);
  if (i != std::string_view::npos) out += kMeanings[i];
  return true;
}

bool JsonUnescape::push_digit(char c, std::string& out) {
  if (std::isxdigit(static_cast<unsigned char>(c)) == 0) {
    give_up(out);
    return push(c, out);
  }
  escape_ += c;
  if (escape_.size() < 6) return true;
  uint32_t code = 0;
  std::from_chars(escape_.data() + 2, escape_.data() + 6, code, 16);
  push_code(code, out);
  return true;
}

// What \uNNNN stands for; characters beyond 16 bits are written as two.
void JsonUnescape::push_code(uint32_t code, std::string& out) {
  const bool is_low = code >= 0xDC00 && code < 0xE000;
  const uint32_t high = surrogate_;
  if (is_low && high == 0) return give_up(out);
  const std::string escape = std::exchange(escape_, {});
  if (is_low) pair_.clear();
  give_up(out);
  if (code >= 0xD800 && code < 0xDC00) {
    pair_ = escape;
    surrogate_ = code;
  } else {
    append_utf8(out, is_low ? 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00) : code);
  }
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
}

ArgumentsScan::Found ArgumentsScan::push(char c, std::string& out) {
  if (mode_ == Mode::start) {
    if (is_space(c)) return Found::more;
    mode_ = c == '"' ? Mode::text : c == 'n' ? Mode::null : Mode::json;
    if (mode_ == Mode::text) return Found::more;
  }
  if (mode_ != Mode::text) return push_json(c, out);
  const size_t before = out.size();
  if (unescape_.push(c, out)) {
    is_empty_ &= out.size() == before;
    return Found::more;
  }
  is_empty_ &= out.size() == before;
  if (is_empty_) out += "{}";
  return Found::last;
}

ArgumentsScan::Found ArgumentsScan::push_json(char c, std::string& out) {
  if (c == '<' && !scan_.in_string()) return Found::broken;
  const JsonScan::Found found = scan_.push(c);
  if (mode_ == Mode::null && found == JsonScan::Found::past) out += "{}";
  if (found == JsonScan::Found::past) return Found::past;
  if (mode_ == Mode::json) out += c;
  return found == JsonScan::Found::last ? Found::last : Found::more;
}

}  // namespace millrace
