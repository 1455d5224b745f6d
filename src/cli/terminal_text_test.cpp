#include "cli/terminal_text.h"

#include <gtest/gtest.h>

namespace millrace::cli {
namespace {

std::string wrapped(std::string_view text, int width) {
  WordWrap wrap;
  std::string out = wrap.push(text, width);
  return out + wrap.flush();
}

TEST(TerminalText, HasNoControlCharacters) {
  EXPECT_EQ(without_controls("a\x1b[31mb\r\n\tc\x07\u009bd\u00e9\xff"), "a[31mb\n\tcd\u00e9");
}

TEST(TerminalText, WrapsBetweenWords) {
  EXPECT_EQ(wrapped("one two three", 20), "one two three");
  EXPECT_EQ(wrapped("one two three", 13), "one two three");
  EXPECT_EQ(wrapped("one two three", 12), "one two \nthree");
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("one\ntwo three", 9), "one\ntwo three");
  EXPECT_EQ(wrapped("  an indented line", 9), "  an \nindented \nline");
  EXPECT_EQ(wrapped("a\tb c", 10), "a\tb \nc");
  EXPECT_EQ(wrapped("one two three", 0), "one two three");
}

TEST(TerminalText, WordsLongerThanALineBreakAtItsEdge) {
  EXPECT_EQ(wrapped("a 123456789 b", 4), "a \n1234\n5678\n9 b");
  EXPECT_EQ(wrapped("ab", 1), "a\nb");
}

TEST(TerminalText, CountsColumnsNotBytes) {
  use_utf8_locale();
  EXPECT_EQ(wrapped("\u00e9\u00e9\u00e9 \u00e9\u00e9", 6), "\u00e9\u00e9\u00e9 \u00e9\u00e9");
  EXPECT_EQ(wrapped("e\u0301e\u0301 e\u0301", 4),
            "e\u0301e\u0301 e\u0301");  // combining: no column
  // Two columns each, and a break between any two.
  EXPECT_EQ(wrapped("\u6c34\u8eca\u6c34\u8eca", 5), "\u6c34\u8eca\n\u6c34\u8eca");
}

TEST(TerminalText, HoldsAWordUntilItEnds) {
  WordWrap wrap;
  EXPECT_EQ(wrap.push("one tw", 8), "one ");
  EXPECT_EQ(wrap.push("elve", 8), "");
  EXPECT_EQ(wrap.push(" x", 8), "\ntwelve ");
  EXPECT_EQ(wrap.flush(), "x");
  EXPECT_EQ(wrap.push("at once", 0), "at once");
}

// Cut anywhere, the text is the same.
TEST(TerminalText, PartsChangeNothing) {
  const std::string text =
      "The miller's wheel\n\n  turns  slowly, 1234567890123 \u6c34\u8eca times.";
  for (size_t step = 1; step < 9; ++step) {
    WordWrap wrap;
    std::string out;
    for (size_t at = 0; at < text.size();) {
      size_t end = std::min(at + step, text.size());
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
      out += wrap.push(std::string_view(text).substr(at, end - at), 10);
      at = end;
    }
    EXPECT_EQ(out + wrap.flush(), wrapped(text, 10)) << step;
  }
}

}  // namespace
}  // namespace millrace::cli
