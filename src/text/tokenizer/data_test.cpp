// Real vocabularies against the ids that their own tokenizers gave: outside data, found through
// MILLRACE_TEST_DATA. `.inp` holds texts between lines `__ggml_vocab_test__`, `.out` a line of ids
// for each.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "files/gguf.h"
#include "files/small_file.h"
#include "text/tokenizer/pre_guess.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace {
namespace {

std::vector<std::string> texts_of(const std::string& file) {
  constexpr std::string_view kBetween = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  for (size_t at = 0;;) {
    const size_t end = file.find(kBetween, at);
    texts.push_back(file.substr(at, end == std::string::npos ? end : end - at));
    if (end == std::string::npos) return texts;
    at = end + kBetween.size();
  }
}

std::vector<int32_t> ids_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<int32_t> ids;
  for (int32_t id; in >> id;) ids.push_back(id);
  return ids;
}

void expect_vectors(const std::string& path) {
  const auto file = Gguf::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  auto vocab = vocab_from_gguf(file.value());
  ASSERT_TRUE(vocab.ok()) << vocab.status().message();
  // What the file says of itself would have been guessed as well; SentencePiece has no such rule.
  const auto pre = file.value().string_or("tokenizer.ggml.pre", "default");
  if (vocab->model == Vocab::Model::byte_level) {
    EXPECT_EQ(guess_pre_rule(vocab->tokens).name, pre.value()) << path;
  }
  const auto made = Tokenizer::make(std::move(*vocab));
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Tokenizer& tokenizer = made.value();
  const auto inputs = read_small_file(path + ".inp", 1 << 20);
  const auto outputs = read_small_file(path + ".out", 1 << 20);
  ASSERT_TRUE(inputs.ok() && outputs.ok());
  std::istringstream lines(outputs.value());
  size_t n = 0;
  for (const std::string& text : texts_of(inputs.value())) {
    std::string line;
    if (!std::getline(lines, line)) break;
    const auto ids = tokenizer.encode(text);
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(ids.value(), ids_of(line)) << path << ": " << text;
    // SentencePiece's own way of a leading space is to swallow it.
    if (!text.starts_with(' ')) {
      EXPECT_EQ(tokenizer.decode(ids.value()), text) << path;
    }
    ++n;
  }
  EXPECT_GT(n, 40u);
}

TEST(TokenizerData, RealVocabulariesGiveTheirOwnIds) {
  const char* data = std::getenv("MILLRACE_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "MILLRACE_TEST_DATA is not set: no outside vocabularies";
  size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(data) + "/tokenizers"))
    if (entry.path().extension() == ".gguf") {
      expect_vectors(entry.path());
      ++n;
    }
  EXPECT_GT(n, 0u);
}

}  // namespace
}  // namespace millrace
