#include "text/grammar/matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "text/grammar/schema_oracle_test.h"

namespace millrace::grammar {
namespace {

using test::accepts;
using test::small_vocabulary;

Grammar finished(Builder& builder, Piece root) {
  auto grammar = builder.finish(root);
  EXPECT_TRUE(grammar.ok()) << grammar.status().message();
  return std::move(*grammar);
}

Grammar of_schema(std::string_view schema, const SchemaOptions& options = {}) {
  Builder builder;
  auto piece = builder.schema_text(schema, options);
  EXPECT_TRUE(piece.ok()) << piece.status().message();
  return finished(builder, *piece);
}

std::vector<int32_t> allowed(Matcher& matcher) {
  const auto n = static_cast<size_t>(small_vocabulary().trie.n_tokens());
  std::vector<uint32_t> bits((n + 31) / 32);
  matcher.mask(bits);
  std::vector<int32_t> ids;
  for (size_t i = 0; i < n; ++i)
    if ((bits[i / 32] >> (i % 32) & 1) != 0) ids.push_back(static_cast<int32_t>(i));
  return ids;
}

std::vector<std::string> allowed_texts(Matcher& matcher) {
  std::vector<std::string> texts;
  for (const int32_t id : allowed(matcher))
    texts.emplace_back(id == test::kEnd      ? "<end>"
                       : id == test::kToolId ? "<tool_call>"
                                             : small_vocabulary().trie.piece(id));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(GrammarMatcher, FollowsALiteralByAnyTokens) {
  Builder b;
  const TokenGrammar grammar(finished(b, b.literal("true,")), small_vocabulary());
  Matcher matcher(grammar);
  EXPECT_EQ(allowed_texts(matcher), (Texts{"t", "true"}));
  EXPECT_EQ(matcher.forced(), "true,");
  EXPECT_FALSE(matcher.accept('f').ok());
  EXPECT_TRUE(matcher.accept('t').ok());
  EXPECT_EQ(allowed_texts(matcher), (Texts{"r"}));
  EXPECT_TRUE(matcher.accept_text("rue,").ok());
  EXPECT_TRUE(matcher.must_end());
  EXPECT_EQ(allowed_texts(matcher), (Texts{"<end>"}));
  EXPECT_TRUE(matcher.accept(test::kEnd).ok());
  EXPECT_TRUE(matcher.ended());
  EXPECT_TRUE(allowed(matcher).empty());
  EXPECT_FALSE(matcher.accept('t').ok());
}

TEST(GrammarMatcher, EndsOnlyWhereTheTextIsWhole) {
  const TokenGrammar grammar(of_schema(R"({"type": "integer"})"), small_vocabulary());
  Matcher matcher(grammar);
  EXPECT_FALSE(matcher.is_complete());
  EXPECT_FALSE(matcher.accept(test::kEnd).ok());
  EXPECT_TRUE(matcher.accept('1').ok());
  EXPECT_TRUE(matcher.is_complete());
  EXPECT_FALSE(matcher.must_end());
  Matcher copy = matcher;
  EXPECT_TRUE(copy.accept('2').ok());
  EXPECT_TRUE(copy.accept(test::kEnd).ok());
  EXPECT_FALSE(matcher.ended());
}

TEST(GrammarMatcher, TakesAControlTokenForItsMarkerAlone) {
  Builder b;
  const std::vector<std::string> stops = {"<tool_call>"};
  auto text = b.text_without(stops);
  ASSERT_TRUE(text.ok());
  const Piece call = b.sequence({b.marker("<tool_call>"), b.literal("1")});
  const Piece other = b.sequence({b.marker("<tool_call>"), b.literal("2")});
  const TokenGrammar grammar(
      finished(b, b.sequence({*text, b.optional(b.alternatives({call, other}))})),
      small_vocabulary());
  Matcher matcher(grammar);
  EXPECT_TRUE(matcher.accept_text("a < b and <tool_cal").ok());
  Matcher by_token = Matcher(grammar), by_text = Matcher(grammar);
  EXPECT_TRUE(by_token.is_complete());
  EXPECT_TRUE(by_token.accept(test::kToolId).ok());
  EXPECT_EQ(allowed_texts(by_token), (Texts{"1", "2"}));
  EXPECT_TRUE(by_text.accept_text("<tool_call>").ok());
  EXPECT_EQ(allowed_texts(by_text), (Texts{"1", "2"}));
  EXPECT_TRUE(by_text.accept('2').ok());
  EXPECT_TRUE(by_text.must_end());
  // A control token that no marker names, and a marker's inside a literal.
  EXPECT_FALSE(Matcher(grammar).accept(test::kToolId + 1).ok());
  Builder plain;
  const TokenGrammar literal(finished(plain, plain.literal("<tool_call>")), small_vocabulary());
  EXPECT_FALSE(Matcher(literal).accept(test::kToolId).ok());
}

TEST(GrammarMatcher, ToolsAreAlternatives) {
  Builder b;
  std::vector<Piece> calls;
  for (const auto& [name, schema] : std::map<std::string, std::string>{
           {"read", R"({"type": "object", "properties": {"path": {"type": "string"}},
                       "required": ["path"]})"},
           {"list", R"({"type": "object", "properties": {}, "additionalProperties": false})"}}) {
    auto arguments = b.schema_text(schema);
    ASSERT_TRUE(arguments.ok());
    calls.push_back(b.sequence({b.marker("<tool_call>"),
                                b.literal("\n{\"name\": \"" + name + "\", \"arguments\": "),
                                *arguments, b.literal("}\n</tool_call>")}));
  }
  const Grammar grammar = finished(b, b.repeat(b.alternatives(calls), b.literal("\n"), 1));
  const std::string read =
      "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>";
  const std::string list = "<tool_call>\n{\"name\": \"list\", \"arguments\": {}}\n</tool_call>";
  EXPECT_TRUE(accepts(grammar, read));
  EXPECT_TRUE(accepts(grammar, list + "\n" + read));
  EXPECT_FALSE(accepts(grammar, list + read));
  EXPECT_FALSE(accepts(grammar,
                       "<tool_call>\n{\"name\": \"list\", \"arguments\": {\"path\": \"a\"}}"
                       "\n</tool_call>"));
  EXPECT_FALSE(accepts(grammar, ""));
}

TEST(GrammarMatcher, AnyJsonIsJsonAndNothingElse) {
  Builder b;
  const Grammar grammar = finished(b, b.json());
  for (const char* good :
       {"0", "-0", "1.5e+07", "\"\"", R"("a\u00e4\ud83d\ude00\n")", "\"\u00e4\u20ac\U0001F600\"",
        "[]", "{}", "[ 1, 2]", "[\n  1,\n  2\n]", R"({"a": {"b": [null, true, false]}})", "{ }"})
    EXPECT_TRUE(accepts(grammar, good)) << good;
  for (const char* bad : {"01",
                          "+1",
                          "1.",
                          ".5",
                          "1e",
                          "\"",
                          "\"\n\"",
                          R"("\x")",
                          R"("\ud83d")",
                          R"("\ude00")",
                          R"("\ud83d\u0041")",
                          "\"\x80\"",
                          "\"\xc3(\"",
                          "\"\xed\xa0\x80\"",
                          "[1,]",
                          "[,]",
                          "{\"a\"}",
                          "{1: 2}",
                          "nul",
                          "[1  , 2]",
                          "[  1]",
                          "[1]  ",
                          "[\n\n1]",
                          "1e999",
                          ""})
    EXPECT_FALSE(accepts(grammar, bad)) << bad;
  const std::string deep(1000, '[');
  EXPECT_FALSE(accepts(grammar, deep + std::string(1000, ']')));
  EXPECT_TRUE(accepts(grammar, std::string(100, '[') + std::string(100, ']')));
}

TEST(GrammarMatcher, NestingEndsBeforeItCannotBeClosed) {
  Builder b;
  const Grammar grammar = finished(b, b.json(true));
  const TokenGrammar tokens{of_schema(R"({"$ref": "#/$defs/a", "$defs": {"a": {"type": "array",
      "items": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "array", "items": {"type": "null"},
      "minItems": 1}]}, "minItems": 1}}})"),
                            small_vocabulary()};
  Matcher matcher(tokens);
  size_t depth = 0;
  while (matcher.accept('[').ok()) ++depth;
  EXPECT_GT(depth, 60u);
  EXPECT_LT(depth, 400u);
  EXPECT_TRUE(matcher.accept_text("null").ok());
  for (size_t i = 0; i < depth; ++i) ASSERT_TRUE(matcher.accept(']').ok()) << i;
  EXPECT_TRUE(matcher.must_end());
}

TEST(GrammarMatcher, AmbiguousSetsStayBounded) {
  const TokenGrammar grammar(of_schema(R"({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [
        {"type": "array", "items": {"$ref": "#/$defs/a"}},
        {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1},
        {"type": "array", "items": {"$ref": "#/$defs/a"}, "maxItems": 9}, {"type": "null"}]}}})"),
                             small_vocabulary());
  Matcher matcher(grammar);
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(matcher.accept('[').ok());
    ASSERT_FALSE(allowed(matcher).empty());
  }
  ASSERT_TRUE(matcher.accept_text("null").ok());
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(matcher.accept(']').ok());
  EXPECT_TRUE(matcher.is_complete());
}

TEST(GrammarMatcher, OneGrammarServesManyAtOnce) {
  Builder b;
  const TokenGrammar grammar(finished(b, b.json()), small_vocabulary());
  const auto run = [&] {
    Matcher matcher(grammar);
    for (const char c : std::string_view(R"({"a": ["\u00e4", 1.5e3, {}]})")) {
      const auto ids = allowed(matcher);
      ASSERT_TRUE(std::find(ids.begin(), ids.end(), c) != ids.end());
      ASSERT_TRUE(matcher.accept(c).ok());
    }
    EXPECT_TRUE(matcher.must_end());
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(run);
  for (std::thread& thread : threads) thread.join();
}

TEST(GrammarMatcher, ForcedTextStopsWhereThereIsAChoice) {
  const TokenGrammar grammar(
      of_schema(R"({"type": "object", "properties": {"mode": {"enum": ["fast", "far"]}},
                    "required": ["mode"]})",
                {.compact = true}),
      small_vocabulary());
  Matcher matcher(grammar);
  EXPECT_EQ(matcher.forced(), R"({"mode":"fa)");
  EXPECT_TRUE(matcher.accept_text(R"({"mode":"fa)").ok());
  EXPECT_EQ(matcher.forced(), "");
  EXPECT_TRUE(matcher.accept('r').ok());
  EXPECT_EQ(matcher.forced(), "\"}");
}

TEST(GrammarBuilder, RefusesWhatHasNoEnd) {
  Builder b;
  EXPECT_FALSE(b.finish(b.repeat(b.literal(""), b.literal(""), 0)).ok());
  Builder never;
  const auto none = never.finish(never.alternatives({}));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().message(), "no text can satisfy it");
}

}  // namespace
}  // namespace millrace::grammar
