#include "text/grammar/token_trie.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/philox.h"
#include "base/utf8.h"
#include "files/gguf.h"
#include "text/grammar/matcher.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace::grammar {
namespace {

std::vector<std::string> random_pieces(size_t n) {
  Rng rng(3);
  std::vector<std::string> pieces;
  for (size_t i = 0; i < n; ++i) {
    std::string piece;
    for (uint64_t length = rng.below(5); length > 0; --length) piece += "ab\"\xc3"[rng.below(4)];
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

TEST(TokenTrie, HoldsEveryTokenAtTheEndOfItsPath) {
  const auto pieces = random_pieces(300);
  const TokenTrie trie(pieces, {7}, {});
  for (int32_t id = 0; id < trie.n_tokens(); ++id) {
    const std::string& piece = pieces[static_cast<size_t>(id)];
    if (piece.empty() || id == 7) {
      EXPECT_EQ(trie.piece(id), "");
      continue;
    }
    int32_t node = TokenTrie::kRoot;
    for (const char c : piece) {
      EXPECT_NE(trie.kinds_below(node) & TokenTrie::kind_of(static_cast<uint8_t>(c)), 0u);
      node = trie.child(node, static_cast<uint8_t>(c));
      ASSERT_GE(node, 0);
    }
    EXPECT_EQ(trie.depth(node), piece.size());
    const auto here = trie.tokens(node);
    EXPECT_NE(std::find(here.begin(), here.end(), id), here.end());
    const auto below =
        trie.tokens_below(trie.child(TokenTrie::kRoot, static_cast<uint8_t>(piece[0])));
    EXPECT_EQ(std::find(below.begin(), below.end(), id) != below.end(), piece.size() > 1);
  }
  EXPECT_EQ(trie.child(TokenTrie::kRoot, 'z'), -1);
}

Tokenizer small_tokenizer() {
  Vocab vocab;
  const auto add = [&](std::string text, TokenType type) {
    vocab.tokens.push_back(std::move(text));
    vocab.types.push_back(type);
  };
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    append_utf8(text, byte_level_char(static_cast<uint8_t>(byte)));
    add(text, TokenType::normal);
  }
  add("<|im_end|>", TokenType::control);
  add("<tool_call>", TokenType::control);
  add("</tool_call>", TokenType::user_defined);
  vocab.eos = 256;
  auto made = Tokenizer::make(std::move(vocab));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(*made);
}

TEST(TokenTrie, KnowsATokenizersControlAndEndTokens) {
  const Vocabulary vocabulary(small_tokenizer());
  EXPECT_TRUE(vocabulary.trie.is_end(256));
  EXPECT_EQ(vocabulary.trie.control("<tool_call>"), 257);
  EXPECT_EQ(vocabulary.trie.piece(257), "");
  EXPECT_EQ(vocabulary.trie.piece(258), "</tool_call>");
  Builder b;
  auto grammar =
      b.finish(b.sequence({b.marker("<tool_call>"), b.literal("1"), b.marker("</tool_call>")}));
  ASSERT_TRUE(grammar.ok());
  const TokenGrammar tokens(std::move(*grammar), vocabulary);
  Matcher matcher(tokens);
  for (const int32_t token : {257, int32_t{'1'}, 258, 256})
    EXPECT_TRUE(matcher.accept(token).ok()) << token;
  EXPECT_TRUE(matcher.ended());
}

// Text as the tokenizer itself cuts it is allowed, token by token.
void expect_follows(const Tokenizer& tokenizer, const std::string& path) {
  constexpr std::string_view kText =
      "I will look.\n\n{\"path\": \"src/\u00e4/\\\"x\\\".txt\", \"lines\": [1, 20, 300], "
      "\"note\": \"Gr\u00fc\u00dfe \U0001F600 and a\\ttab\"}";
  Builder b;
  auto text = b.text_without(std::vector<std::string>{"{"});
  auto schema = b.schema_text(R"({"properties": {"path": {"type": "string", "maxLength": 40},
      "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 3},
      "note": {"type": "string", "minLength": 1}}, "required": ["path", "lines"]})");
  ASSERT_TRUE(text.ok() && schema.ok());
  auto grammar = b.finish(b.sequence({*text, *schema}));
  ASSERT_TRUE(grammar.ok()) << grammar.status().message();
  const Vocabulary vocabulary(tokenizer);
  const TokenGrammar tokens(std::move(*grammar), vocabulary);
  Matcher matcher(tokens);
  std::vector<uint32_t> mask((static_cast<size_t>(tokenizer.size()) + 31) / 32);
  const auto ids = tokenizer.encode(kText);
  ASSERT_TRUE(ids.ok());
  for (const int32_t id : ids.value()) {
    matcher.mask(mask);
    EXPECT_TRUE((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0)
        << path << " token " << id << " " << printable(tokenizer.piece(id));
    ASSERT_TRUE(matcher.accept(id).ok());
  }
  EXPECT_TRUE(matcher.must_end());
}

TEST(GrammarData, RealVocabulariesFollowTheirOwnTokens) {
  const char* data = std::getenv("MILLRACE_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "MILLRACE_TEST_DATA is not set: no outside vocabularies";
  size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(data) + "/tokenizers")) {
    if (entry.path().extension() != ".gguf") continue;
    const auto file = Gguf::open(entry.path());
    ASSERT_TRUE(file.ok());
    auto vocab = vocab_from_gguf(file.value());
    ASSERT_TRUE(vocab.ok());
    const auto tokenizer = Tokenizer::make(std::move(*vocab));
    ASSERT_TRUE(tokenizer.ok());
    expect_follows(tokenizer.value(), entry.path());
    ++n;
  }
  EXPECT_GT(n, 0u);
}

}  // namespace
}  // namespace millrace::grammar
