#include "text/output/json_scan.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

// The text up to where the value ended; "..." after it: it did not.
std::string value_in(std::string_view text) {
  JsonScan scan;
  for (size_t i = 0; i < text.size(); ++i) {
    const JsonScan::Found found = scan.push(text[i]);
    if (found == JsonScan::Found::last) return std::string(text.substr(0, i + 1));
    if (found == JsonScan::Found::past) return std::string(text.substr(0, i));
  }
  return std::string(text) + "...";
}

TEST(JsonScan, FindsTheEndOfAValue) {
  EXPECT_EQ(value_in("{\"a\": [1, {}]} x"), "{\"a\": [1, {}]}");
  EXPECT_EQ(value_in("{\"a\": \"}\\\"}\"}}"), "{\"a\": \"}\\\"}\"}");
  EXPECT_EQ(value_in("\"a\\\\\", 1"), "\"a\\\\\"");
  EXPECT_EQ(value_in("-1.5e3, 2"), "-1.5e3");
  EXPECT_EQ(value_in("true}"), "true");
  EXPECT_EQ(value_in("12 "), "12");
  EXPECT_EQ(value_in("{\"a\": 1"), "{\"a\": 1...");
}

std::string unescaped(std::string_view text) {
  JsonUnescape unescape;
  std::string out;
  for (const char c : text)
    if (!unescape.push(c, out)) return out + "|";
  return out;
}

TEST(JsonScan, ReadsStrings) {
  EXPECT_EQ(unescaped("a\\n\\t\\\"\\\\\\/\"b"), "a\n\t\"\\/|");
  EXPECT_EQ(unescaped("\\u00e9\\u6f22\\ud83d\\ude42\""), "é漢🙂|");
  EXPECT_EQ(unescaped("\\x\\u12\""), "\\x\\u12|");
  EXPECT_EQ(unescaped("\\ud83dx\\ude42\""), "\\ud83dx\\ude42|");
  EXPECT_EQ(unescaped("\\ud83d\\n\""), "\\ud83d\n|");
  EXPECT_EQ(unescaped("\\ud83d\\ud83d\\ude42\""), "\\ud83d🙂|");
  EXPECT_EQ(unescaped("\\u1\\n\""), "\\u1\n|");
  EXPECT_EQ(unescaped("\\ud83d\""), "\\ud83d|");
}

TEST(JsonScan, EscapesStrings) {
  std::string out;
  append_escaped(out, "a\"\\\n\r\t\x01é");
  EXPECT_EQ(out, "a\\\"\\\\\\n\\r\\t\\u0001é");
}

}  // namespace
}  // namespace millrace
