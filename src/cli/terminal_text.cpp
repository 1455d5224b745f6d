#include "cli/terminal_text.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <utility>

#include "base/utf8.h"

namespace millrace::cli {
namespace {

constexpr int kTabColumns = 8;

int columns_of(char32_t code) {
  if (code < 0x7F) return 1;
  const int columns = wcwidth(static_cast<wchar_t>(code));
  return columns < 0 ? 1 : columns;  // newer than the C library: it takes some place
}

bool is_terminal(std::FILE* out) {
  return isatty(fileno(out)) == 1;
}

}  // namespace

std::string without_controls(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    const bool control =
        (c.code < 0x20 && c.code != '\n' && c.code != '\t') || (c.code >= 0x7F && c.code < 0xA0);
    if (c.valid() && !control) out.append(text.substr(at, c.bytes));
    at += c.bytes;
  }
  return out;
}

void use_utf8_locale() {
  std::setlocale(LC_CTYPE, "");
  if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
}

void WordWrap::place_word() {
  if (width_ > 0 && column_ > 0 && column_ + word_columns_ > width_) {
    shown_ += '\n';
    column_ = 0;
  }
  shown_ += std::exchange(word_, {});
  column_ += std::exchange(word_columns_, 0);
}

// At the edge a space shows nothing, and the next word begins a line in any case.
void WordWrap::add_space(char space) {
  const int columns = space == '\t' ? kTabColumns - column_ % kTabColumns : 1;
  if (width_ > 0 && column_ + columns > width_) {
    column_ = std::max(width_, 1);
    return;
  }
  shown_ += space;
  column_ += columns;
}

void WordWrap::add(std::string_view character, int columns) {
  const bool breaks_anywhere = columns > 1;
  if (breaks_anywhere || (width_ > 0 && word_columns_ + columns > width_)) place_word();
  word_ += character;
  word_columns_ += columns;
  if (breaks_anywhere) place_word();
}

std::string WordWrap::push(std::string_view text, int width) {
  width_ = width;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    if (c.code == '\n' || c.code == ' ' || c.code == '\t') {
      place_word();
      if (c.code == '\n') {
        shown_ += '\n';
        column_ = 0;
      } else {
        add_space(text[at]);
      }
    } else {
      add(text.substr(at, c.bytes), columns_of(c.code));
    }
    at += c.bytes;
  }
  if (width_ <= 0) place_word();
  return std::exchange(shown_, {});
}

std::string WordWrap::flush() {
  place_word();
  return std::exchange(shown_, {});
}

TextOutput::TextOutput(std::FILE* out, Style style) : out_(out), style_(style) {
  if (style.is_terminal && style.wraps) use_utf8_locale();
}

int TextOutput::columns() const {
  if (style_.columns > 0) return style_.columns;
  winsize size{};
  return ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void TextOutput::write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
}

void TextOutput::put(std::string_view text) {
  if (!style_.is_terminal) return write(text);
  const std::string shown = without_controls(text);
  write(style_.wraps ? wrap_.push(shown, columns()) : shown);
}

void TextOutput::flush() {
  write(wrap_.flush());
}

void print_text(std::FILE* out, std::string_view text) {
  TextOutput(out, {.is_terminal = is_terminal(out)}).put(text);
}

}  // namespace millrace::cli
