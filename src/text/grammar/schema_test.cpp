#include "text/grammar/schema.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.h"
#include "text/grammar/schema_oracle_test.h"
#include "text/grammar/tool_schemas_test.h"

namespace millrace::grammar {
namespace {

using test::accepts;
using Texts = std::vector<std::string>;

struct Compiled {
  Result<Grammar> grammar;
  Texts warnings;
};

Compiled compiled(std::string_view schema, const SchemaOptions& options = {}) {
  Builder builder;
  auto piece = builder.schema_text(schema, options);
  if (!piece.ok()) return {piece.status(), {}};
  Texts warnings(builder.warnings().begin(), builder.warnings().end());
  return {builder.finish(*piece), std::move(warnings)};
}

// What a schema takes and does not; without warnings unless they are given.
void expect(std::string_view schema, const Texts& good, const Texts& bad,
            const Texts& warnings = {}) {
  const Compiled c = compiled(schema);
  ASSERT_TRUE(c.grammar.ok()) << schema << ": " << c.grammar.status().message();
  EXPECT_EQ(c.warnings, warnings) << schema;
  for (const auto& text : good) EXPECT_TRUE(accepts(c.grammar.value(), text)) << schema << text;
  for (const auto& text : bad) EXPECT_FALSE(accepts(c.grammar.value(), text)) << schema << text;
}

void expect_error(std::string_view schema, std::string_view message,
                  const SchemaOptions& options = {}) {
  const Compiled c = compiled(schema, options);
  ASSERT_FALSE(c.grammar.ok()) << schema;
  EXPECT_EQ(c.grammar.status().code(), Code::invalid_argument) << schema;
  EXPECT_EQ(c.grammar.status().message(), message) << schema;
}

// Given up with this warning, and an error where the schema is strict.
void expect_given_up(std::string_view schema, const std::string& warning) {
  const Compiled c = compiled(schema);
  ASSERT_TRUE(c.grammar.ok()) << schema << ": " << c.grammar.status().message();
  EXPECT_EQ(c.warnings, Texts{warning + ", ignored"}) << schema;
  expect_error(schema, warning, {.strict = true});
}

TEST(GrammarSchema, Types) {
  expect(R"({"type": "string"})", {R"("")", R"("a")"}, {"1", "null"});
  expect(R"({"type": "boolean"})", {"true", "false"}, {"null", "tru"});
  expect(R"({"type": "null"})", {"null"}, {"0", ""});
  expect(R"({"type": ["integer", "null"]})", {"5", "-12", "null"}, {"1.5", "\"\""});
  expect(R"({"type": "number"})", {"5", "-1.25", "1e9", "0.1E-3"}, {"1e1000", "NaN"});
  expect(R"({"type": "integer"})", {"0", "999999999999999999"}, {"1000000000000000000", "1e3"});
  expect(R"({"type": "string", "nullable": true})", {"\"\"", "null"}, {"1"});
  expect("true", {"1", "{}", "[]"}, {""});
  expect("{}", {"1", "{}", "[]"}, {""});
  expect_error("false", "no text can satisfy it");
  expect_error(R"({"type": "strin"})", "$.type: it is not a type of JSON");
  expect_error("[]", "$: a schema is an object or a boolean");
  expect_error("{", "$: the schema is not JSON, or nests too deep");
}

TEST(GrammarSchema, Objects) {
  constexpr std::string_view kSchema =
      R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "null"},
          "c": {"type": "boolean"}}, "required": ["b"]})";
  expect(kSchema,
         {R"({"b": null})", R"({"a": 1, "b": null})", R"({"b":null,"c":true})",
          "{\n  \"a\": 1,\n  \"b\": null,\n  \"c\": false\n}"},
         {"{}", R"({"a": 1})", R"({"b": null, "a": 1})", R"({"b": null, "d": 1})",
          R"({"b": null,})", R"({"b": null, "b": null})"});
  expect(R"({"type": "object"})", {"{}", R"({"x": [1]})", R"({"x": 1, "y": 2})"}, {"[]"});
  expect(R"({"type": "object", "additionalProperties": {"type": "integer"}})",
         {"{}", R"({"x": 1})"}, {R"({"x": "1"})"});
  expect(R"({"properties": {"ab": {"type": "null"}}, "additionalProperties": {"type": "integer"}})",
         {"{}", R"({"ab": null})", R"({"ab": null, "a": 1})", R"({"abc": 1, "b": 2})"},
         {R"({"ab": 1})", R"({"a": 1, "ab": null})", R"({"a": null})"});
  expect(R"({"type": "object", "required": ["x"], "properties": {}})", {R"({"x": 1})"},
         {"{}", R"({"x": 1, "y": 2})"});
  expect(R"({"type": "object", "additionalProperties": false})", {"{}", "{ }"}, {R"({"x": 1})"});
  expect(R"({"type": "object", "patternProperties": {"^x": {"type": "integer"}}})",
         {"{}", R"({"x1": 1, "x": 2})"}, {R"({"a": 1})", R"({"x": null})"});
  expect(R"({"type": "object", "propertyNames": {"enum": ["a", "b"]},
             "additionalProperties": {"type": "null"}})",
         {"{}", R"({"a": null, "b": null})"}, {R"({"c": null})"});
  expect(R"({"properties": {"a": false, "b": {"type": "null"}}})", {"{}", R"({"b": null})"},
         {R"({"a": 1})"});
  expect_error(R"({"properties": {"a": false}, "required": ["a"]})", "no text can satisfy it");
}

TEST(GrammarSchema, AdditionalPropertiesByDefaultWhenAsked) {
  const auto c = compiled(R"({"properties": {"a": {"type": "null"}}})", {.additional = true});
  ASSERT_TRUE(c.grammar.ok());
  EXPECT_TRUE(accepts(c.grammar.value(), R"({"a": null, "b": 1})"));
  EXPECT_FALSE(accepts(c.grammar.value(), R"({"a": 1})"));
}

TEST(GrammarSchema, Arrays) {
  expect(R"({"type": "array", "items": {"type": "integer"}})", {"[]", "[1]", "[1, 2,3]", "[ ]"},
         {"[null]", "[1,]", "[1 2]"});
  expect(R"({"type": "array", "minItems": 2, "maxItems": 3, "items": {"type": "null"}})",
         {"[null, null]", "[null,null,null]"}, {"[]", "[null]", "[null,null,null,null]"});
  expect(R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"});
  expect(R"({"prefixItems": [{"type": "integer"}, {"type": "string"}]})",
         {"[]", "[1]", R"([1, "a"])"}, {R"(["a"])", R"([1, "a", 2])"});
  expect(R"({"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": {"type": "null"},
             "minItems": 2, "maxItems": 3})",
         {R"([1, "a"])", R"([1, "a", null])"},
         {"[1]", R"([1, "a", 2])", R"([1, "a", null, null])"});
  expect(R"({"prefixItems": [{"type": "integer"}, {"type": "string"}], "maxItems": 1})",
         {"[]", "[1]"}, {R"([1, "a"])"});
  expect(
      R"({"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "null"}})",
      {"[]", "[1, null, null]"}, {"[null]", "[1, 1]"});
  expect(R"({"type": "array", "items": false})", {"[]"}, {"[1]"});
  expect_error(R"({"type": "array", "items": false, "minItems": 1})", "no text can satisfy it");
  expect_error(R"({"type": "array", "minItems": 3, "maxItems": 2})", "no text can satisfy it");
  expect_error(R"({"type": "array", "minItems": -1})", "$.minItems: it is not a whole number");
}

TEST(GrammarSchema, ValuesAndChoices) {
  expect(R"({"enum": ["fast", "faster", "slow", 1, null, [1, {"a": "b"}]]})",
         {R"("fast")", R"("faster")", "1", "null", R"([1, {"a": "b"}])", R"([1,{"a":"b"}])"},
         {R"("fas")", R"("fastest")", "2", "[1]"});
  expect(R"({"type": "string", "enum": ["a", 1]})", {R"("a")"}, {"1"});
  expect(R"({"const": "a\"\nä"})", {R"("a\"\nä")"}, {R"("a")"});
  expect(R"({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]})", {"1", R"("a")"},
         {R"("ab")", "null"});
  expect(R"({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
             "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})",
         {R"({"a": null})", R"({"b": null})", R"({"a": null, "b": null})"}, {"{}"});
  expect(R"({"oneOf": [{"type": "integer"}, {"type": "string"}]})", {"1", R"("a")"}, {"null"});
  expect(R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})", {"1", "1.5"}, {"null"},
         {"$.oneOf: held as anyOf: more than one may match"});
  expect_error(R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
               "$.oneOf: it is held as anyOf: more than one may match", {.strict = true});
  EXPECT_TRUE(compiled(R"({"oneOf": [
      {"properties": {"kind": {"const": "a"}}, "required": ["kind"]},
      {"properties": {"kind": {"const": "b"}}, "required": ["kind"]}]})",
                       {.strict = true})
                  .grammar.ok());
  expect_error(R"({"enum": []})", "no text can satisfy it");
  expect_error(R"({"type": "string", "enum": [1]})", "no text can satisfy it");
}

TEST(GrammarSchema, AllOfIsMerged) {
  expect(R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
             {"properties": {"b": {"type": "null"}, "a": {"minimum": 3, "maximum": 4}}}]})",
         {R"({"a": 3})", R"({"a": 4, "b": null})"}, {R"({"a": 2})", "{}", R"({"a": "x"})"});
  expect(R"({"allOf": [{"type": ["integer", "string"]}, {"type": ["number", "null"]}]})", {"1"},
         {"1.5", "null", R"("")"});
  expect(R"({"allOf": [{"enum": [1, 2]}, {"enum": [2, 3]}]})", {"2"}, {"1", "3"});
  expect(R"({"$defs": {"s": {"type": "string"}}, "$ref": "#/$defs/s", "maxLength": 1})",
         {R"("")", R"("a")"}, {R"("ab")", "1"});
  expect(R"({"allOf": [{"properties": {"a": {}}, "additionalProperties": false},
             {"properties": {"b": {}}}]})",
         {"{}", R"({"a": 1})"}, {R"({"b": 1})"});
  expect(R"({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}],
             "unevaluatedProperties": {"type": "null"}})",
         {R"({"a": 1, "b": 1, "c": null})"}, {R"({"c": 1})"});
  expect_error(R"({"allOf": [{"type": "string"}, {"type": "null"}]})", "no text can satisfy it");
  expect_given_up(R"({"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "b"}]})",
                  "$.pattern: it cannot be merged with another one");
}

TEST(GrammarSchema, References) {
  expect(R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {
             "left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}}}}})",
         {"{}", R"({"left": {"left": {}, "right": {}}})"}, {R"({"left": 1})"});
  expect(R"({"definitions": {"a/b": {"type": "null"}}, "$ref": "#/definitions/a~1b"})", {"null"},
         {"1"});
  expect(R"({"type": "array", "items": {"$ref": "#"}})", {"[]", "[[], [[]]]"}, {"[1]"});
  expect_error(R"({"$ref": "#/$defs/none"})", "$.$ref: the schema has no \"#/$defs/none\"");
  expect_error(R"({"$ref": "https://example.org/x"})",
               "$.$ref: only references within the schema (#/...) are followed, not "
               "\"https://example.org/x\"");
  expect_error(R"({"$ref": "#"})", "a cycle of $ref never takes any input");
  expect_error(R"({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "null"}]},
                   "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"})",
               "a cycle of $ref never takes any input");
  expect_error(R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})",
               "no text can satisfy it");
  EXPECT_FALSE(compiled(R"({"allOf": [{"$ref": "#"}, {"type": "null"}]})").grammar.ok());
}

TEST(GrammarSchema, Strings) {
  expect(R"({"type": "string", "minLength": 2, "maxLength": 3})",
         {R"("ab")", R"("äöü")", R"("\u00e4\n\ud83d\ude00")"}, {R"("a")", R"("abcd")"});
  expect(R"({"type": "string", "maxLength": 0})", {R"("")"}, {R"("a")"});
  expect(R"({"type": "string", "pattern": "^[a-z]+(-[0-9]{2,3})?$"})",
         {R"("a")", R"("abc-12")", R"("x-123")"}, {R"("")", R"("a-1")", R"("A")", R"("a-1234")"});
  expect(R"({"type": "string", "pattern": "b"})", {R"("abc")", R"("\n\"b\\")"}, {R"("ac")"});
  expect(R"({"type": "string", "pattern": "^a|b$"})", {R"("ax")", R"("xb")"}, {R"("xa")"});
  expect(R"({"type": "string", "pattern": "^[^\"]*\\.txt$"})", {R"("ä.txt")"}, {R"("\".txt")"});
  expect(R"({"type": "string", "pattern": "^a*$", "minLength": 1, "maxLength": 3})",
         {R"("a")", R"("aaa")"}, {R"("")", R"("aaaa")"});
  expect(R"({"type": "string", "format": "date"})", {R"("2026-11-16")"}, {R"("2026-13-01")"});
  expect(R"({"type": "string", "format": "uuid"})", {R"("123e4567-e89b-12d3-a456-426614174000")"},
         {R"("123")"});
  expect(R"({"type": "string", "format": "date-time"})",
         {R"("2026-11-16T07:00:00Z")", R"("2026-11-16T07:00:00.5+01:00")"}, {R"("2026-11-16")"});
  expect(R"({"type": "string", "format": "email"})", {R"("a.b@example.org")"}, {R"("a@b")"});
  expect(R"({"type": "string", "format": "time"})", {R"("07:00:00Z")"}, {R"("7:00:00Z")"});
  expect(R"({"type": "string", "format": "duration"})", {R"("P3D")", R"("PT1H30M")", R"("P2W")"},
         {R"("P")", R"("PT")", R"("PT1H30S")"});
  expect(R"({"type": "string", "format": "hostname"})", {R"("a-b.example")"}, {R"("-a")", R"("")"});
  expect(R"({"type": "string", "format": "ipv4"})", {R"("127.0.0.1")"}, {R"("256.0.0.1")"});
  expect(R"({"type": "string", "format": "ipv6"})", {R"("1:2:3:4:5:6:7:8")"}, {R"("1:2")"});
  expect(R"({"type": "string", "format": "uri"})",
         {R"("https://example.org/a/b.html?q=1#x")", R"("http://localhost:8080")"},
         {R"("example.org")", R"("http://a b")"});
  expect_error(R"({"type": "string", "minLength": 3, "maxLength": 2})", "no text can satisfy it");
  expect_error(R"({"type": "string", "pattern": "^(aa)+$", "minLength": 3, "maxLength": 3})",
               "no text can satisfy it");
}

TEST(GrammarSchema, Numbers) {
  expect(R"({"type": "integer", "minimum": 3, "maximum": 120})", {"3", "9", "10", "99", "120"},
         {"2", "121", "-3", "03", "1000"});
  expect(R"({"type": "integer", "minimum": -15, "exclusiveMaximum": 2})", {"-15", "-9", "0", "1"},
         {"2", "-16", "-20", "-0"});
  expect(R"({"type": "integer", "minimum": 0})", {"0", "7", "123456"}, {"-1"});
  expect(R"({"type": "integer", "exclusiveMinimum": 0.5})", {"1"}, {"0"});
  expect(R"({"type": "number", "minimum": 0, "maximum": 1})", {"0", "0.25", "1", "1.0"},
         {"-0.1", "1.1", "2"});
  expect(R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 2})",
         {"0.01", "1", "1.999"}, {"0", "0.0", "2", "2.0", "-1"});
  expect(R"({"type": "number", "minimum": -2, "maximum": 2})", {"-2", "-1.5", "-0.5", "0", "2.0"},
         {"-2.1", "2.1"});
  expect(R"({"type": "number", "minimum": 5})", {"5", "5.5", "100"}, {"4.9"});
  expect_error(R"({"type": "integer", "minimum": 3, "maximum": 2})", "no text can satisfy it");
  expect_error(R"({"type": "integer", "minimum": 1.2, "maximum": 1.8})", "no text can satisfy it");
  expect_error(R"({"type": "integer", "minimum": "1"})", "$.minimum: it is not a number");
}

TEST(GrammarSchema, EveryIntegerRangeIsExact) {
  for (int lo = -25; lo <= 25; lo += 3)
    for (int hi = lo; hi <= 130; hi += 7) {
      const auto c =
          compiled(fmt::format(R"({{"type": "integer", "minimum": {}, "maximum": {}}})", lo, hi));
      ASSERT_TRUE(c.grammar.ok());
      for (int i = -40; i < 150; ++i)
        ASSERT_EQ(accepts(c.grammar.value(), fmt::format("{}", i)), i >= lo && i <= hi)
            << lo << ' ' << hi << ' ' << i;
    }
}

TEST(GrammarSchema, GivesUpByName) {
  expect_given_up(R"({"properties": {"name": {"type": "string", "pattern": "^(?=a)b"}}})",
                  "$.properties.name.pattern: look-ahead is not supported");
  expect_given_up(R"({"type": "string", "pattern": "(a)\\1"})",
                  "$.pattern: back-references are not supported");
  expect_given_up(R"({"type": "string", "format": "iri"})", "$.format: \"iri\" is not supported");
  expect_given_up(R"({"type": "array", "uniqueItems": true})", "$.uniqueItems: not supported");
  expect_given_up(R"({"not": {"type": "null"}})", "$.not: not supported");
  expect_given_up(R"({"items": {"type": "integer", "multipleOf": 5}})",
                  "$.items.multipleOf: not supported");
  expect_given_up(R"({"type": "object", "minProperties": 1})",
                  "$.minProperties: properties are not counted");
  expect_given_up(R"({"type": "number", "minimum": 0.5})",
                  "$.minimum: only its whole part is held: its fraction is");
  expect_given_up(R"({"properties": {"a": {"type": "object", "required": true}}})",
                  "$.properties.a.required: it is not a list of names");
  expect_given_up(R"({"properties": {"a": {}}, "propertyNames": {"minLength": 2}})",
                  "$.propertyNames: not held beside named properties");
  expect_given_up(R"({"allOf": [{"prefixItems": [{}]}, {"items": {"type": "null"}}]})",
                  "$.prefixItems: it cannot be merged with another's items");
  expect_given_up(R"({"type": "string", "pattern": "^a{1,5000}$"})",
                  "$.pattern: repeats beyond 1000 are not counted");
  const auto unknown = compiled(R"({"type": "null", "markdown": "x"})", {.strict = true});
  EXPECT_TRUE(unknown.grammar.ok());
  EXPECT_EQ(unknown.warnings, Texts{"$.markdown: not a keyword that is known, ignored"});
}

// Ends soon, in a grammar or an error. The time is that of a slow machine with other work to do.
void expect_soon(const std::string& schema) {
  const int64_t start = now_ns();
  const auto lax = compiled(schema);
  const auto strict = compiled(schema, {.strict = true});
  EXPECT_LT(now_ns() - start, 10'000'000'000) << schema.substr(0, 100);
  if (!lax.warnings.empty()) {
    EXPECT_FALSE(strict.grammar.ok()) << schema.substr(0, 100);
  }
}

TEST(GrammarSchema, HostileSchemasEndSoon) {
  for (const auto& [name, schema] : test::hostile_schemas()) {
    SCOPED_TRACE(name);
    expect_soon(schema);
  }
}

TEST(GrammarSchema, PatternsThatAreTooLargeKeepTheirCharacters) {
  const auto c = compiled(R"({"type": "string", "pattern": "^[\\u0100-\\uffff\\n]{2,900}$"})");
  ASSERT_TRUE(c.grammar.ok());
  EXPECT_EQ(c.warnings, Texts{"$.pattern: repeats beyond 16 are not counted, ignored"});
  EXPECT_TRUE(accepts(c.grammar.value(), R"("\n\u000a\u000a")"));
  EXPECT_FALSE(accepts(c.grammar.value(), R"("\n")"));
  EXPECT_FALSE(accepts(c.grammar.value(), R"("aa")"));
}

TEST(GrammarSchema, LargeRepeatsAreCounted) {
  const auto c = compiled(R"({"type": "array", "items": {"const": 1}, "minItems": 1000,
                              "maxItems": 1001})",
                          {.compact = true});
  ASSERT_TRUE(c.grammar.ok());
  for (const size_t n : {999, 1000, 1001, 1002}) {
    std::string text = "[1";
    for (size_t i = 1; i < n; ++i) text += ",1";
    text += "]";
    EXPECT_EQ(accepts(c.grammar.value(), text), n == 1000 || n == 1001) << n;
  }
}

}  // namespace
}  // namespace millrace::grammar
