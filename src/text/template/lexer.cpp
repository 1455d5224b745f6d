#include "text/template/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "text/template/text.h"

namespace millrace::jinja {
namespace {

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_point(uint32_t code) {
  if (code < 0x80)
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || code == '_' ||
           (code >= '0' && code <= '9');
  return is_word(code);
}

// One newline is one "\n", and the last one of the template goes.
std::string with_plain_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(with_plain_newlines(source)) {}

  Result<std::vector<Token>> run();

 private:
  Status root();
  Status tag(char open);
  Status comment();
  Result<bool> raw();
  Status in_tag(bool block);
  bool at_tag_end(bool block, size_t& length, bool& strip) const;
  Status number();
  void name();
  Status string(char quote);
  Status escape(std::string& out, size_t& at, size_t end) const;
  Status bracket(char c);
  Status op();

  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool starts(std::string_view text) const { return rest().starts_with(text); }
  size_t skip_space(size_t at) const;
  // Consumes up to `end`, counting lines.
  void advance_to(size_t end);
  void emit(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }
  void emit_data(std::string_view text, char sign, bool lstrip);
  template <class... A>
  Status fail(fmt::format_string<A...> format, A&&... args) const {
    return error(Code::invalid_argument, "template line {}: {}", line_,
                 fmt::format(format, std::forward<A>(args)...));
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::string brackets_;  // the closing ones still owed
  std::vector<Token> tokens_;
};

size_t Lexer::skip_space(size_t at) const {
  while (at < source_.size() && is_space(point_at(source_, at).code))
    at += point_at(source_, at).bytes;
  return at;
}

void Lexer::advance_to(size_t end) {
  line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                       source_.begin() + static_cast<ptrdiff_t>(end), '\n'));
  if (end > at_) line_starting_ = source_[end - 1] == '\n';
  at_ = end;
}

// Text before a tag, cut as the tag's sign and the settings say.
void Lexer::emit_data(std::string_view text, char sign, bool lstrip) {
  Budget unlimited;  // every byte of the source is looked at a few times at most
  size_t end = text.size();
  if (sign == '-') {
    end = stripped(text, {.left = false, .right = true}, unlimited).end;
  } else if (sign != '+' && lstrip) {
    const size_t newline = text.rfind('\n');
    const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    const Span left = stripped(text.substr(line_begin), {.left = true, .right = false}, unlimited);
    if ((line_begin > 0 || line_starting_) && left.begin == left.end) end = line_begin;
  }
  if (end > 0) emit(TokenKind::data, std::string(text.substr(0, end)));
}

Status Lexer::root() {
  size_t open = at_;
  while (true) {
    open = source_.find('{', open);
    if (open == std::string::npos || open + 1 >= source_.size()) open = source_.size();
    if (open == source_.size()) break;
    const char next = source_[open + 1];
    if (next == '%' || next == '{' || next == '#') break;
    ++open;
  }
  const std::string_view text = rest().substr(0, open - at_);
  if (open == source_.size()) {
    if (!text.empty()) emit(TokenKind::data, std::string(text));
    at_ = open;
    return {};
  }
  const char kind = source_[open + 1];
  const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
  const bool signed_tag = sign == '-' || sign == '+';
  emit_data(text, signed_tag ? sign : '\0', kind != '{');
  advance_to(open + (signed_tag ? 3 : 2));
  return tag(kind);
}

Status Lexer::tag(char open) {
  if (open == '#') return comment();
  if (open == '%') {
    MILLRACE_ASSIGN(const bool was_raw, raw());
    if (was_raw) return {};
  }
  const bool block = open == '%';
  emit(block ? TokenKind::block_begin : TokenKind::print_begin, "");
  return in_tag(block);
}

Status Lexer::comment() {
  const size_t close = source_.find("#}", at_);
  if (close == std::string::npos) return fail("a comment ({{#) is never closed");
  const char sign = close > at_ ? source_[close - 1] : '\0';
  size_t end = close + 2;
  if (sign == '-')
    end = skip_space(end);
  else if (sign != '+' && end < source_.size() && source_[end] == '\n')
    ++end;
  advance_to(end);
  return {};
}

// {% raw %} ... {% endraw %}: whether it was one. Stands behind the opening tag's sign.
Result<bool> Lexer::raw() {
  size_t at = skip_space(at_);
  if (source_.compare(at, 3, "raw") != 0) return false;
  at = skip_space(at + 3);
  if (source_.compare(at, 3, "-%}") == 0)
    at = skip_space(at + 3);
  else if (source_.compare(at, 2, "%}") == 0)
    at += 2;
  else
    return false;
  advance_to(at);
  for (size_t open = at_; (open = source_.find("{%", open)) != std::string::npos; open += 2) {
    at = open + 2;
    const char sign = at < source_.size() ? source_[at] : '\0';
    if (sign == '-' || sign == '+') ++at;
    at = skip_space(at);
    if (source_.compare(at, 6, "endraw") != 0) continue;
    at = skip_space(at + 6);
    const char close = at < source_.size() ? source_[at] : '\0';
    if (close == '-' || close == '+') ++at;
    if (source_.compare(at, 2, "%}") != 0) continue;
    at += 2;
    if (close == '-')
      at = skip_space(at);
    else if (close != '+' && at < source_.size() && source_[at] == '\n')
      ++at;
    emit_data(rest().substr(0, open - at_), sign, true);
    advance_to(at);
    return true;
  }
  return fail("{{% raw %}} is never closed");
}

bool Lexer::at_tag_end(bool block, size_t& length, bool& strip) const {
  strip = false;
  if (!brackets_.empty()) return false;
  const std::string_view close = block ? "%}" : "}}";
  if (starts(close)) {
    length = 2;
    if (block && rest().substr(2).starts_with('\n')) length = 3;
    return true;
  }
  const char sign = source_[at_];
  if (sign != '-' && !(sign == '+' && block)) return false;
  strip = sign == '-';
  length = 3;
  return rest().substr(1).starts_with(close);
}

Status Lexer::in_tag(bool block) {
  const int opened = line_;
  while (at_ < source_.size()) {
    size_t length = 0;
    bool strip = false;
    if (at_tag_end(block, length, strip)) {
      emit(block ? TokenKind::block_end : TokenKind::print_end, "");
      advance_to(strip ? skip_space(at_ + length) : at_ + length);
      return {};
    }
    const Point p = point_at(source_, at_);
    if (is_space(p.code))
      advance_to(skip_space(at_));
    else if (p.code < 0x80 && is_ascii_digit(static_cast<char>(p.code)))
      MILLRACE_TRY(number());
    else if (is_name_point(p.code))
      name();
    else if (p.code == '"' || p.code == '\'')
      MILLRACE_TRY(string(static_cast<char>(p.code)));
    else
      MILLRACE_TRY(op());
  }
  return error(Code::invalid_argument, "template line {}: a tag ({}) is never closed", opened,
               block ? "{%" : "{{");
}

void Lexer::name() {
  size_t end = at_;
  while (end < source_.size() && is_name_point(point_at(source_, end).code))
    end += point_at(source_, end).bytes;
  emit(TokenKind::name, source_.substr(at_, end - at_));
  advance_to(end);
}

// Digits with single underscores between them; the end of them.
template <class Is>
size_t digits_end(std::string_view text, size_t at, Is is_one) {
  while (at < text.size() &&
         (is_one(text[at]) || (text[at] == '_' && at + 1 < text.size() && is_one(text[at + 1]))))
    ++at;
  return at;
}

Status Lexer::number() {
  const std::string_view text = source_;
  size_t end = at_;
  bool real = false;
  const char prefix = at_ + 1 < text.size() ? static_cast<char>(text[at_ + 1] | 32) : '\0';
  if (text[at_] == '0' && (prefix == 'x' || prefix == 'o' || prefix == 'b')) {
    end = digits_end(text, at_ + 2, [&](char c) {
      const char lower = static_cast<char>(c | 32);
      if (prefix == 'b') return c == '0' || c == '1';
      if (prefix == 'o') return c >= '0' && c <= '7';
      return is_ascii_digit(c) || (lower >= 'a' && lower <= 'f');
    });
  } else {
    end = digits_end(text, at_, is_ascii_digit);
    const bool after_dot = at_ > 0 && text[at_ - 1] == '.';
    if (!after_dot && end + 1 < text.size() && text[end] == '.' && is_ascii_digit(text[end + 1])) {
      real = true;
      end = digits_end(text, end + 1, is_ascii_digit);
    }
    if (!after_dot && end < text.size() && (text[end] | 32) == 'e') {
      size_t exponent = end + 1;
      if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
      if (exponent < text.size() && is_ascii_digit(text[exponent])) {
        real = true;
        end = digits_end(text, exponent, is_ascii_digit);
      }
    }
  }
  std::string digits(text.substr(at_, end - at_));
  std::erase(digits, '_');
  const bool padded = !real && digits.size() > 1 && digits[0] == '0' && is_ascii_digit(digits[1]) &&
                      digits.find_first_not_of('0') != std::string::npos;
  if (padded) return fail("{} begins with a zero; octal numbers are written 0o17", digits);
  emit(real ? TokenKind::real : TokenKind::integer, std::move(digits));
  advance_to(end);
  return {};
}

// The character a backslash stands before; `at` stands behind the backslash.
Status Lexer::escape(std::string& out, size_t& at, size_t end) const {
  constexpr std::string_view kNames = "abfnrtv\\'\"", kMeans = "\a\b\f\n\r\t\v\\'\"";
  const char c = source_[at++];
  if (const size_t i = kNames.find(c); i != std::string_view::npos) {
    out += kMeans[i];
    return {};
  }
  if (c == '\n') return {};
  const size_t n_hex = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  uint32_t code = 0;
  if (n_hex > 0) {
    if (at + n_hex > end) return fail("a string ends inside its escape \\{}", c);
    for (size_t i = 0; i < n_hex; ++i) {
      const char h = source_[at++], lower = static_cast<char>(h | 32);
      if (!is_ascii_digit(h) && !(lower >= 'a' && lower <= 'f'))
        return fail("the escape \\{} wants {} hexadecimal digits", c, n_hex);
      code = code * 16 + static_cast<uint32_t>(is_ascii_digit(h) ? h - '0' : lower - 'a' + 10);
    }
  } else if (c >= '0' && c <= '7') {
    code = static_cast<uint32_t>(c - '0');
    for (int i = 0; i < 2 && at < end && source_[at] >= '0' && source_[at] <= '7'; ++i)
      code = code * 8 + static_cast<uint32_t>(source_[at++] - '0');
  } else if (c == 'N') {
    return fail("characters by name (\\N) are not supported; write \\uXXXX");
  } else {
    out += '\\';
    out += c;
    return {};
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    return fail("\\{} names no character", c);
  append_utf8(out, code);
  return {};
}

Status Lexer::string(char quote) {
  size_t end = at_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) return fail("a string is never closed");
  std::string value;
  for (size_t at = at_ + 1; at < end;) {
    if (source_[at] != '\\')
      value += source_[at++];
    else
      MILLRACE_TRY(escape(value, ++at, end));
  }
  emit(TokenKind::string, std::move(value));
  advance_to(end + 1);
  return {};
}

Status Lexer::bracket(char c) {
  if (c == '(') brackets_ += ')';
  if (c == '[') brackets_ += ']';
  if (c == '{') brackets_ += '}';
  if (c != ')' && c != ']' && c != '}') return {};
  if (brackets_.empty()) return fail("unexpected '{}'", c);
  if (brackets_.back() != c) return fail("unexpected '{}', expected '{}'", c, brackets_.back());
  brackets_.pop_back();
  return {};
}

Status Lexer::op() {
  constexpr std::array<std::string_view, 6> kLong = {"//", "**", "==", "!=", ">=", "<="};
  constexpr std::string_view kShort = "+-/*%~[](){}><=.:|,;";
  for (const std::string_view two : kLong)
    if (starts(two)) {
      emit(TokenKind::op, std::string(two));
      at_ += 2;
      return {};
    }
  const char c = source_[at_];
  if (kShort.find(c) == std::string_view::npos)
    return fail("unexpected character '{}'",
                printable(rest().substr(0, point_at(source_, at_).bytes)));
  MILLRACE_TRY(bracket(c));
  emit(TokenKind::op, std::string(1, c));
  ++at_;
  line_starting_ = false;
  return {};
}

Result<std::vector<Token>> Lexer::run() {
  while (at_ < source_.size()) MILLRACE_TRY(root());
  emit(TokenKind::end, "");
  return std::move(tokens_);
}

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace millrace::jinja
