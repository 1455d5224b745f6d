// Ids that Hugging Face's tokenizers and SentencePiece gave, on vocabularies of our own
// (tests/tokenizer/make_vectors.py): from tokenizer.json, and from GGUF metadata that says the
// same.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "model/gguf.h"
#include "model/gguf_bytes_test.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

Json vectors(const std::string& name) {
  std::ifstream in(std::string(MILLRACE_TOKENIZER_VECTORS) + "/" + name + ".json");
  return Json::parse(in, nullptr, false);
}

std::vector<std::string> texts(const char* key) {
  std::vector<std::string> out;
  const Json file = vectors("texts");
  for (const std::string hex : file.at(key)) {
    out.emplace_back();
    for (size_t i = 0; i < hex.size(); i += 2)
      out.back() += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return out;
}

Tokenizer made(Result<Vocab> vocab) {
  EXPECT_TRUE(vocab.ok()) << vocab.status().message();
  auto tokenizer = Tokenizer::make(std::move(*vocab));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return std::move(*tokenizer);
}

// The tokenizer.json of a family, with the vocabulary that families share put back.
Json tokenizer_json(const Json& family) {
  Json json = family.at("tokenizer");
  if (!json["model"].contains("vocab")) json["model"].update(vectors("byte_level"));
  return json;
}

Tokenizer from_json(const Json& family) {
  HfFiles files;
  files.tokenizer = tokenizer_json(family).dump();
  return made(vocab_from_tokenizer_json(files));
}

void put_strings(GgufBytes& out, const char* key, const std::vector<std::string>& values) {
  out.array(key, GgufType::string, values.size());
  for (const std::string& value : values) out.text(value);
}

void put_types(GgufBytes& out, const std::vector<int32_t>& types) {
  out.array("tokenizer.ggml.token_type", GgufType::i32, types.size());
  for (const int32_t type : types) out.put(type);
}

// What a conversion of the family's tokenizer.json to GGUF would write.
Tokenizer from_gguf(const std::string& pre, const Json& family) {
  const Json json = tokenizer_json(family);
  std::vector<std::string> tokens(json["model"]["vocab"].size() + json["added_tokens"].size());
  std::vector<int32_t> types(tokens.size(), 1);
  for (const auto& [text, id] : json["model"]["vocab"].items()) tokens.at(id) = text;
  for (const Json& added : json["added_tokens"]) {
    tokens.at(added["id"]) = added["content"];
    types.at(added["id"]) = added["special"] ? 3 : 4;
  }
  std::vector<std::string> merges;
  for (const Json& merge : json["model"]["merges"])
    merges.push_back(std::string(merge[0]) + " " + std::string(merge[1]));
  const auto bos = std::find(tokens.begin(), tokens.end(), "<s>") - tokens.begin();
  GgufBytes out;
  out.begin(0, 7).string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", pre);
  put_strings(out, "tokenizer.ggml.tokens", tokens);
  put_types(out, types);
  put_strings(out, "tokenizer.ggml.merges", merges);
  out.u32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(bos));
  out.key("tokenizer.ggml.add_bos_token", GgufType::boolean).put<uint8_t>(1);
  const auto file = Gguf::read(out.span(), "vectors.gguf");
  EXPECT_TRUE(file.ok()) << file.status().message();
  return made(vocab_from_gguf(file.value()));
}

Tokenizer spm_from_gguf(const Json& spm) {
  GgufBytes out;
  out.begin(0, 7).string("tokenizer.ggml.model", "llama");
  put_strings(out, "tokenizer.ggml.tokens", spm["tokens"]);
  put_types(out, spm["types"]);
  out.array("tokenizer.ggml.scores", GgufType::f32, spm["scores"].size());
  for (const float score : spm["scores"]) out.put(score);
  out.u32("tokenizer.ggml.bos_token_id", spm["bos"]).u32("tokenizer.ggml.eos_token_id", spm["eos"]);
  out.u32("tokenizer.ggml.unknown_token_id", spm["unknown"]);
  const auto file = Gguf::read(out.span(), "spm.gguf");
  EXPECT_TRUE(file.ok()) << file.status().message();
  return made(vocab_from_gguf(file.value()));
}

Ids encode(const Tokenizer& tokenizer, std::string_view text, bool special) {
  const TextPart part{text, special};
  auto ids = tokenizer.encode(std::span(&part, 1));
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  return std::move(*ids);
}

void expect_ids(const Tokenizer& tokenizer, const char* key, const Json& wanted, bool special) {
  const auto inputs = texts(key);
  ASSERT_EQ(inputs.size(), wanted.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_EQ(encode(tokenizer, inputs[i], special), wanted[i].get<Ids>()) << printable(inputs[i]);
}

void expect_family(const Tokenizer& tokenizer, const Json& family) {
  expect_ids(tokenizer, "texts", family["ids"], false);
  expect_ids(tokenizer, "with_control", family["control_ids"], true);
  expect_ids(tokenizer, "with_control", family["plain_ids"], false);
  EXPECT_EQ(tokenizer.encode("a b", true).value(), family["wrapped"].get<Ids>());
}

class TokenizerVectors : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerVectors, ByteLevelFromTokenizerJson) {
  const Json family = vectors(GetParam());
  ASSERT_TRUE(family.is_object());
  expect_family(from_json(family), family);
}

TEST_P(TokenizerVectors, ByteLevelFromGguf) {
  const Json family = vectors(GetParam());
  ASSERT_TRUE(family.is_object());
  expect_family(from_gguf(GetParam(), family), family);
}

TEST_P(TokenizerVectors, AnyBytesComeBack) {
  const Tokenizer tokenizer = from_gguf(GetParam(), vectors(GetParam()));
  if (std::string_view(GetParam()) == "qwen2") return;  // which normalises
  for (const std::string& text : texts("texts"))
    EXPECT_EQ(tokenizer.decode(encode(tokenizer, text, false)), text);
}

INSTANTIATE_TEST_SUITE_P(, TokenizerVectors,
                         testing::Values("default", "gpt-2", "smollm", "llama-bpe", "qwen2",
                                         "deepseek-llm", "deepseek-coder", "deepseek-v3", "gpt-4o",
                                         "tekken"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(TokenizerCharacters, WithByteFallback) {
  const Json family = vectors("characters");
  expect_family(from_json(family), family);
}

TEST(TokenizerCharacters, WithMetaspace) {
  const Json family = vectors("metaspace");
  expect_family(from_json(family), family);
}

TEST(TokenizerCharacters, ByScore) {
  const Json spm = vectors("spm");
  const Tokenizer tokenizer = spm_from_gguf(spm);
  expect_ids(tokenizer, "texts", spm["ids"], false);
  for (const std::string& text : texts("texts")) {
    if (text.find(kSpaceMark) != std::string::npos) continue;  // which reads as a space
    EXPECT_EQ(tokenizer.decode(encode(tokenizer, text, false)), text);
  }
}

}  // namespace
}  // namespace millrace
