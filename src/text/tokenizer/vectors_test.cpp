// Ids that Hugging Face's tokenizers and SentencePiece gave, on vocabularies of our own
// (tests/tokenizer/make_vectors.py): from tokenizer.json, from GGUF metadata that says the same,
// and from the metadata that tokenizer.json is written as.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "files/gguf.h"
#include "files/gguf_bytes_test.h"
#include "files/gguf_write.h"
#include "text/tokenizer/tokenizer.h"

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

Result<Vocab> vocab_from_json(const Json& family) {
  HfFiles files;
  files.tokenizer = tokenizer_json(family).dump();
  return vocab_from_tokenizer_json(files);
}

Tokenizer from_json(const Json& family) {
  return made(vocab_from_json(family));
}

// Written as GGUF and read again.
Tokenizer rewritten(const Vocab& vocab, int64_t n_tokens = 0) {
  const std::string path = fmt::format("{}/vocab_{}.gguf", ::testing::TempDir(), getpid());
  GgufWriter writer;
  const Status status = write_vocab(vocab, n_tokens, writer);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(writer.begin(path).ok() && writer.finish().ok());
  const auto file = Gguf::open(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return made(vocab_from_gguf(file.value()));
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

Result<Vocab> spm_vocab(const Json& spm) {
  GgufBytes out;
  out.begin(0, 7).string("tokenizer.ggml.model", "llama");
  put_strings(out, "tokenizer.ggml.tokens", spm["tokens"]);
  put_types(out, spm["types"]);
  out.array("tokenizer.ggml.scores", GgufType::f32, spm["scores"].size());
  for (const float score : spm["scores"]) out.put(score);
  out.u32("tokenizer.ggml.bos_token_id", spm["bos"]).u32("tokenizer.ggml.eos_token_id", spm["eos"]);
  out.u32("tokenizer.ggml.unknown_token_id", spm["unknown"]);
  MILLRACE_ASSIGN(const Gguf file, Gguf::read(out.span(), "spm.gguf"));
  return vocab_from_gguf(file);
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

TEST_P(TokenizerVectors, ByteLevelWrittenAsGguf) {
  const Json family = vectors(GetParam());
  const auto vocab = vocab_from_json(family);
  ASSERT_TRUE(vocab.ok()) << vocab.status().message();
  const int64_t n = static_cast<int64_t>(vocab.value().tokens.size()) + 3;
  const Tokenizer tokenizer = rewritten(vocab.value(), n);
  expect_family(tokenizer, family);
  EXPECT_EQ(tokenizer.size(), n);
  EXPECT_EQ(tokenizer.bos(), from_json(family).bos());
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
  const Tokenizer tokenizer = made(spm_vocab(spm));
  expect_ids(tokenizer, "texts", spm["ids"], false);
  for (const std::string& text : texts("texts")) {
    if (text.find(kSpaceMark) != std::string::npos) continue;  // which reads as a space
    EXPECT_EQ(tokenizer.decode(encode(tokenizer, text, false)), text);
  }
}

// As Hugging Face turns SentencePiece's scores into merges: all pairs that make a token, best
// first.
Vocab merges_of(Vocab vocab) {
  std::vector<std::pair<float, Vocab::Merge>> merges;
  const auto id_of = [&](std::string_view text) {
    const auto at = std::find(vocab.tokens.begin(), vocab.tokens.end(), text);
    return at == vocab.tokens.end() ? -1 : static_cast<int32_t>(at - vocab.tokens.begin());
  };
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string_view text = vocab.tokens[i];
    if (vocab.types[i] != TokenType::normal) continue;
    for (size_t at = utf8_length(text); at < text.size(); at += utf8_length(text.substr(at))) {
      const Vocab::Merge merge{id_of(text.substr(0, at)), id_of(text.substr(at)),
                               static_cast<int32_t>(i)};
      if (merge.left >= 0 && merge.right >= 0) merges.emplace_back(vocab.scores[i], merge);
    }
  }
  std::stable_sort(merges.begin(), merges.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& merge : merges) vocab.merges.push_back(merge.second);
  vocab.model = Vocab::Model::characters;
  vocab.scores.clear();
  return vocab;
}

TEST(TokenizerCharacters, WrittenAsGguf) {
  const Json spm = vectors("spm");
  const Vocab vocab = merges_of(spm_vocab(spm).value());
  expect_ids(made(vocab), "texts", spm["ids"], false);
  expect_ids(rewritten(vocab), "texts", spm["ids"], false);
}

TEST(WriteVocab, RefusesWhatGgufCannotSay) {
  const auto why_not = [](const Vocab& vocab) {
    GgufWriter writer;
    return std::string(write_vocab(vocab, 0, writer).message());
  };
  const Vocab good = vocab_from_json(vectors("qwen2")).value();
  EXPECT_EQ(why_not(good), "");
  Vocab vocab = good;
  vocab.split[0].pattern += "x";
  EXPECT_NE(why_not(vocab).find("pre_tokenizer"), std::string::npos);
  vocab = good;
  vocab.added[0].lstrip = true;
  EXPECT_NE(why_not(vocab).find("<tool_call>"), std::string::npos);
  vocab = good;
  vocab.prefix = {1, 2};
  EXPECT_NE(why_not(vocab).find("around a prompt"), std::string::npos);
  vocab = good;
  vocab.eog = {1, 2, 3};
  EXPECT_NE(why_not(vocab).find("end a generation"), std::string::npos);
  EXPECT_NE(why_not(vocab_from_json(vectors("metaspace")).value()).find("spaces"),
            std::string::npos);
  EXPECT_NE(why_not(vocab_from_json(vectors("characters")).value()).find("merges"),
            std::string::npos);
}

}  // namespace
}  // namespace millrace
