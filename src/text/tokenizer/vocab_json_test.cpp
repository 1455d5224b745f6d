// tokenizer.json files made to take far more memory than their size: each is refused, by an error
// that names the place, before the memory is taken. And what the long lists may look like.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "text/tokenizer/tokenizer.h"

namespace millrace {
namespace {

constexpr std::string_view kModel =
    R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})";

Result<Tokenizer> made(const std::string& members) {
  MILLRACE_ASSIGN(Vocab vocab, vocab_from_tokenizer_json({"{" + members + "}", "", "", ""}));
  return Tokenizer::make(std::move(vocab));
}

std::string error_of(const std::string& members) {
  const auto tokenizer = made(members);
  return std::string(tokenizer.status().message());
}

void expect_refused(const std::string& members, std::string_view part) {
  EXPECT_NE(error_of(members).find(part), std::string::npos)
      << "wanted: " << part << "\ngot: " << error_of(members);
}

std::string repeated(std::string_view text, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += text;
  if (out.ends_with(',')) out.pop_back();
  return out;
}

std::string with_pipeline(std::string_view key, const std::string& value) {
  return fmt::format(R"({}, "{}": {})", kModel, key, value);
}

std::string with_merges(std::string_view merges) {
  return fmt::format(
      R"("model": {{"merges": {}, "vocab": {{"a": 0, "b": 1, "ab": 2}}, "type": "BPE"}})", merges);
}

// 2,000 uses of a name that stands for 50,000 tokens.
TEST(VocabJson, AProcessorThatMultipliesIsRefused) {
  const auto processor = [](size_t n_uses, size_t n_ids) {
    return with_pipeline(
        "post_processor",
        fmt::format(R"({{"type": "TemplateProcessing", "single": [{}, {{"Sequence": {{}}}}, {}],
                         "special_tokens": {{"s": {{"ids": [{}]}}}}}})",
                    repeated(R"({"SpecialToken": {"id": "s"}},)", n_uses),
                    repeated(R"({"SpecialToken": {"id": "s"}},)", n_uses), repeated("0,", n_ids)));
  };
  expect_refused(processor(2000, 50'000), "post_processor puts more than 256 tokens");
  expect_refused(processor(65, 2), "post_processor puts more than 256 tokens");
  auto tokenizer = made(processor(2, 64));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(tokenizer->encode("ab", true).value().size(), 257u);
}

TEST(VocabJson, JsonThatTakesFarMoreThanItsSizeIsRefused) {
  for (const std::string_view element : {"[],", "{},", "\"\",", "1,", "[[]],", "{\"\":[]},"})
    expect_refused(with_pipeline("x", "[" + repeated(element, 6'000'000 / element.size()) + "]"),
                   "this JSON takes more than");
  expect_refused(with_pipeline("x", repeated("[", 100'000) + repeated("]", 100'000)),
                 "nested more than");
  expect_refused(with_pipeline("x", repeated("[", 1'000'000)), "nested more than");
}

TEST(VocabJson, LongSequencesOfStepsAreRefused) {
  expect_refused(with_pipeline("normalizer", R"({"type": "Sequence", "normalizers": [)" +
                                                 repeated(R"({"type": "NFC"},)", 65) + "]}"),
                 "normalizers has 65 steps");
  expect_refused(with_pipeline("pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [)" +
                                                    repeated(R"({"type": "Digits"},)", 65) + "]}"),
                 "pretokenizers has 65 steps");
}

// Each token is 200 bytes long, and normalising makes it 12,000.
TEST(VocabJson, AddedTokensThatGrowAreRefused) {
  std::string added;
  for (int i = 0; i < 1000; ++i)
    added += fmt::format(R"({{"id": {}, "content": "{}{}", "normalized": true}},)", 3 + i,
                         std::string(200, 'a'), i);
  added.pop_back();
  expect_refused(fmt::format(R"({}, "added_tokens": [{}], "normalizer": {{"type": "Replace",
                      "pattern": {{"String": "a"}}, "content": "{}"}})",
                             kModel, added, std::string(60, 'b')),
                 "the added token 3");
}

TEST(VocabJson, MergesAreStringsOrPairsInAnyOrderOfKeys) {
  for (const char* merges : {R"(["a b"])", R"([["a", "b"]])"}) {
    auto tokenizer = made(with_merges(merges));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    EXPECT_EQ(tokenizer->size(), 3);
  }
  for (const char* merges : {R"(["a b", "ab"])", R"(["a b", "a b c"])", R"(["a b", ["a"]])",
                             R"(["a b", ["a", "b", "ab"]])", R"(["a b", 7])", R"(["a b", {}])",
                             R"(["a b", ["a", 7]])", R"(["a b", [["a"], "b"]])"})
    expect_refused(with_merges(merges), "model.merges[1] is not a pair");
  expect_refused(with_merges(R"(["a c"])"), "model.merges[0] ('a' and 'c') names no tokens");
  expect_refused(with_merges("7"), "model.merges is not an array");
}

TEST(VocabJson, IdsAreNumbers) {
  for (const char* id : {"-1", "1.5", "\"0\"", "null", "[0]", "{\"a\": 1}", "18446744073709551615"})
    expect_refused(
        fmt::format(R"("model": {{"type": "BPE", "vocab": {{"a": {}}}, "merges": []}})", id),
        "the id of 'a'");
  expect_refused(R"("model": {"type": "BPE", "vocab": {"a": 4000000000}, "merges": []})",
                 "the id of 'a' is 4000000000; the limit here is 65537");
  expect_refused(R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []})",
                 "both have the id 0");
  expect_refused(R"("model": {"type": "BPE", "vocab": [["a", 0]], "merges": []})",
                 "model.vocab is not an object");
  expect_refused(fmt::format(R"({}, "added_tokens": [{{"id": "0", "content": "a"}}])", kModel),
                 "the id of 'a'");
}

}  // namespace
}  // namespace millrace
