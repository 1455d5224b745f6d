#include "serve/json_body.h"

#include <gtest/gtest.h>

#include "base/json_text.h"

namespace millrace::serve {
namespace {

std::string parsed(std::string_view text) {
  const auto out = parse_body(text);
  if (const auto* error = std::get_if<ApiError>(&out)) {
    EXPECT_EQ(http_status(error->kind), 400);
    return error->message;
  }
  return json_text(std::get<Json>(out));
}

TEST(JsonBody, KeepsTheOrderOfMembersAndTheLastOfTwo) {
  EXPECT_EQ(parsed(R"({"b":1,"a":[{"z":null,"y":-0.5}],"b":2})"),
            R"({"b":2,"a":[{"z":null,"y":-0.5}]})");
}

TEST(JsonBody, KeepsLargeIntegers) {
  EXPECT_EQ(parsed(R"({"a":9007199254740993,"b":18446744073709551615,"c":-9223372036854775808})"),
            R"({"a":9007199254740993,"b":18446744073709551615,"c":-9223372036854775808})");
}

TEST(JsonBody, RefusesWhatIsNoObject) {
  EXPECT_EQ(parsed(""), "the body is empty; send a JSON object");
  EXPECT_EQ(parsed("[1]"), "the body must be a JSON object");
  EXPECT_EQ(parsed("null"), "the body must be a JSON object");
  EXPECT_EQ(parsed("{\"a\":}"), "the body is not valid JSON at byte 6");
  EXPECT_EQ(parsed("{\"a\":1} x"), "the body is not valid JSON at byte 9");
  EXPECT_EQ(parsed("{\"a\":NaN}"), "the body is not valid JSON at byte 6");
  EXPECT_EQ(parsed("{\"a\":1e999}"), "the body has a number that is too large at byte 10");
  EXPECT_EQ(parsed(std::string("{\"a\":\"\0\"}", 9)), "the body is not valid JSON at byte 7");
}

TEST(JsonBody, RefusesBrokenUtf8) {
  EXPECT_EQ(parsed("{\"a\":\"x\xff\"}"), "the body is not valid UTF-8 at byte 7");
  EXPECT_EQ(parsed("{\"a\":\"\xed\xa0\x80\"}"), "the body is not valid UTF-8 at byte 6");
}

TEST(JsonBody, ReplacesHalvesOfSurrogatePairs) {
  EXPECT_EQ(parsed(R"({"a":"\ud83d"})"), "{\"a\":\"\xEF\xBF\xBD\"}");
  EXPECT_EQ(parsed(R"({"a":"\udc00\ud83dx"})"), "{\"a\":\"\xEF\xBF\xBD\xEF\xBF\xBDx\"}");
  EXPECT_EQ(parsed(R"({"a":"\ud83d\ud83d\ude00"})"), "{\"a\":\"\xEF\xBF\xBD\U0001F600\"}");
  EXPECT_EQ(parsed(R"({"a":"\\ud83d"})"), R"({"a":"\\ud83d"})");
}

TEST(JsonBody, BoundsDepth) {
  const auto nested = [](int depth) {
    return "{\"a\":" + std::string(static_cast<size_t>(depth - 1), '[') +
           std::string(static_cast<size_t>(depth - 1), ']') + "}";
  };
  EXPECT_EQ(parsed(nested(kMaxBodyDepth)), nested(kMaxBodyDepth));
  EXPECT_EQ(parsed(nested(kMaxBodyDepth + 1)), "the body nests more than 128 deep");
  EXPECT_EQ(parsed("{\"a\":" + std::string(100'000, '[')), "the body nests more than 128 deep");
}

TEST(JsonBody, BoundsMemory) {
  std::string lists = "{\"a\":[";
  for (int i = 0; i < 1'000'000; ++i) lists += "[],";
  EXPECT_TRUE(parsed(lists + "0]}").starts_with("the body takes more than")) << "was parsed";
}

TEST(JsonBody, ManyKeysAreNotSlow) {
  std::string many = "{";
  for (int i = 0; i < 200'000; ++i) many += "\"k" + std::to_string(i % 150'000) + "\":1,";
  const auto out = parse_body(many + "\"z\":0}");
  ASSERT_TRUE(std::holds_alternative<Json>(out));
  EXPECT_EQ(std::get<Json>(out).size(), 150'001u);
}

}  // namespace
}  // namespace millrace::serve
