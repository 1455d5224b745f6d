#include "base/utf8.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Utf8, KnowsWhatIsValid) {
  for (const char* good : {"", "a", "é", "語", "😀", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
                          "\xe8\xaa", "a\xc3", "\xc3(", "\xf0\x9f\x98("})
    EXPECT_FALSE(is_utf8(bad)) << printable(bad);
}

TEST(Utf8, MeasuresOneCharacter) {
  EXPECT_EQ(utf8_length(""), 0u);
  EXPECT_EQ(utf8_length("ab"), 1u);
  EXPECT_EQ(utf8_length("語x"), 3u);
  EXPECT_EQ(utf8_length("\xe8\xaa"), 0u);
}

TEST(Utf8, ReadsAndWritesEveryCharacter) {
  for (uint32_t code = 0; code <= 0x10FFFF; code = code == 0xD7FF ? 0xE000 : code + 1) {
    std::string text;
    append_utf8(text, code);
    const Utf8Char c = decode_utf8(text, 0);
    ASSERT_TRUE(c.valid() && c.code == char32_t{code} && c.bytes == text.size()) << code;
    for (size_t n = 1; n < text.size(); ++n) {
      const Utf8Char part = decode_utf8(std::string_view(text).substr(0, n), 0);
      ASSERT_EQ(part.state, Utf8Char::State::incomplete) << code;
      ASSERT_EQ(part.bytes, n) << code;
    }
  }
}

TEST(Utf8, MeasuresThePartThatBeganACharacter) {
  EXPECT_EQ(decode_utf8("\xf0\x9f\x98(", 0).bytes, 3u);
  EXPECT_EQ(decode_utf8("\xe0\x80\x80", 0).bytes, 1u);
  EXPECT_EQ(decode_utf8("\xff", 0).state, Utf8Char::State::invalid);
  EXPECT_EQ(first_broken_byte("0123456789\xc3\xa9\xc3"), 12u);
  EXPECT_EQ(first_broken_byte("0123456789\xff"), 10u);
}

TEST(Utf8, MakesTextFitToShow) {
  EXPECT_EQ(printable("plain é 語"), "plain é 語");
  EXPECT_EQ(printable("a\nb\x1b[31m\x7f"), "a\\x0ab\\x1b[31m\\x7f");
  EXPECT_EQ(printable("\xc2\x9b!"), "\\xc2\\x9b!");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("語語語", 7), "語語...");
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable("abcd", 3), "abc...");
}

}  // namespace
}  // namespace millrace
