#include "text/tokenizer/pre_guess.h"

#include <gtest/gtest.h>

#include <vector>

#include "files/gguf.h"
#include "files/gguf_bytes_test.h"
#include "text/tokenizer/pre_rules.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace {
namespace {

struct Placed {
  size_t id;
  std::string token;
};

std::vector<std::string> vocabulary(size_t n, const std::vector<Placed>& placed) {
  std::vector<std::string> tokens(n, "x");
  for (const Placed& p : placed) tokens[p.id] = p.token;
  return tokens;
}

TEST(PreGuess, TellsFamiliesApart) {
  struct Case {
    std::string_view pre;
    size_t n;
    std::vector<Placed> placed;
  };
  const Case cases[] = {
      {"llama-bpe",
       128256,
       {{128000, "<|begin_of_text|>"}, {128006, "<|start_header_id|>"}, {128009, "<|eot_id|>"}}},
      {"llama4", 202048, {{200000, "<|begin_of_text|>"}, {200005, "<|header_start|>"}}},
      {"llama-bpe", 128256, {{128000, "<｜begin▁of▁sentence｜>"}}},
      {"qwen2", 151936, {{151643, "<|endoftext|>"}, {151644, "<|im_start|>"}}},
      {"deepseek-r1-qwen",
       151936,
       {{151643, "<｜end▁of▁sentence｜>"}, {151646, "<｜begin▁of▁sentence｜>"}}},
      {"deepseek-v3", 129280, {{0, "<｜begin▁of▁sentence｜>"}, {128800, "<｜fim▁hole｜>"}}},
      {"deepseek-llm", 102400, {{100000, "<｜begin▁of▁sentence｜>"}}},
      {"deepseek-coder", 32256, {{32013, "<｜begin▁of▁sentence｜>"}, {32015, "<｜fim▁hole｜>"}}},
      {"gpt-4o", 201088, {{199999, "<|endoftext|>"}, {200018, "<|endofprompt|>"}}},
      {"tekken", 131072, {{1, "<s>"}, {3, "[INST]"}, {4, "[/INST]"}, {5, "[AVAILABLE_TOOLS]"}}},
      {"smollm", 49152, {{0, "<|endoftext|>"}, {1, "<|im_start|>"}, {3, "<repo_name>"}}},
      {"starcoder", 49152, {{0, "<|endoftext|>"}, {1, "<fim_prefix>"}}},
      {"olmo", 50280, {{1, "<|padding|>"}, {50279, "<|endoftext|>"}}},
      {"gpt-2", 50257, {{50256, "<|endoftext|>"}}},
      {"", 50257, {{0, "<|endoftext|>"}}},
      {"", 10, {}},
      {"", 0, {}},
  };
  for (const Case& c : cases) {
    const PreGuess guess = guess_pre_rule(vocabulary(c.n, c.placed));
    EXPECT_EQ(guess.name, c.pre) << c.n;
    if (!c.pre.empty()) {
      EXPECT_TRUE(pre_rule_named(guess.name).ok()) << guess.name;
    }
  }
}

Vocab read(const std::vector<std::string>& tokens, const char* pre) {
  GgufBytes b;
  b.begin(0, pre == nullptr ? 3 : 4).string("tokenizer.ggml.model", "gpt2");
  if (pre != nullptr) b.string("tokenizer.ggml.pre", pre);
  b.array("tokenizer.ggml.tokens", GgufType::string, tokens.size());
  for (const std::string& token : tokens) b.text(token);
  b.array("tokenizer.ggml.merges", GgufType::string, 0);
  const auto file = Gguf::read(b.span(), "test.gguf");
  EXPECT_TRUE(file.ok()) << file.status().message();
  auto vocab = vocab_from_gguf(file.value());
  EXPECT_TRUE(vocab.ok()) << vocab.status().message();
  return std::move(*vocab);
}

TEST(PreGuess, AFileThatNamesNoneSaysWhatWasAssumed) {
  const std::vector<std::string> llama = {"a", "<|begin_of_text|>", "<|start_header_id|>",
                                          "<|eot_id|>"};
  const Vocab guessed = read(llama, nullptr);
  EXPECT_EQ(guessed.split, pre_rule_named("llama-bpe")->split);
  ASSERT_EQ(guessed.warnings.size(), 1u);
  EXPECT_EQ(guessed.warnings[0],
            "test.gguf: no tokenizer.ggml.pre; using the pre-tokenizer 'llama-bpe' because the "
            "vocabulary has <|begin_of_text|>, <|start_header_id|>, <|eot_id|>");
  const Vocab unknown = read({"a", "b"}, nullptr);
  EXPECT_EQ(unknown.split, pre_rule_named("default")->split);
  ASSERT_EQ(unknown.warnings.size(), 1u);
  EXPECT_NE(unknown.warnings[0].find("2 tokens are of no known model family"), std::string::npos);
  const auto made = Tokenizer::make(unknown);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made.value().warnings().size(), 1u);

  EXPECT_TRUE(read(llama, "default").warnings.empty());
  EXPECT_EQ(read(llama, "default").split, pre_rule_named("default")->split);
}

}  // namespace
}  // namespace millrace
