#include "text/output/tool_set.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

TEST(ToolSet, TakesToolsInEveryShape) {
  const ToolSet tools(Json::parse(R"([
    {"type": "function", "function": {"name": "a", "parameters": {"properties": {"n": {"type": "number"}}}}},
    {"name": "b", "input_schema": {"properties": {"n": {"enum": [1, null]}}}},
    {"name": 5}, 7, null, {"function": []}, {"name": "c", "parameters": 3}])"));
  EXPECT_TRUE(tools.contains("a") && tools.contains("b") && tools.contains("c"));
  EXPECT_FALSE(tools.contains("") || tools.contains("d"));
  EXPECT_TRUE(tools.types("a", "n").number);
  EXPECT_FALSE(tools.types("a", "n").string);
  EXPECT_TRUE(tools.types("b", "n").null && tools.types("b", "n").number);
  EXPECT_TRUE(tools.types("a", "x").only_string() && tools.types("x", "x").only_string());
  EXPECT_TRUE(ToolSet(Json(nullptr)).empty() && ToolSet(Json::object()).empty());
}

TEST(ToolSet, TypesValues) {
  const ValueTypes number = {.number = true}, list = {.array = true};
  EXPECT_EQ(typed_json(" 12 ", number), "12");
  EXPECT_EQ(typed_json("012", number), "\"012\"");
  EXPECT_EQ(typed_json("true", number), "\"true\"");
  EXPECT_EQ(typed_json("[1, {}]", list), "[1, {}]");
  EXPECT_EQ(typed_json("[1", list), "\"[1\"");
  EXPECT_EQ(typed_json("None", {.string = true, .null = true}), "null");
  EXPECT_EQ(typed_json("None", {.string = true}), "\"None\"");
  EXPECT_EQ(typed_json("True", {.boolean = true}), "true");
  EXPECT_EQ(typed_json(" a\n", {.string = true, .number = true}), "\" a\\n\"");
  EXPECT_EQ(typed_json("", number), "\"\"");
}

}  // namespace
}  // namespace millrace
