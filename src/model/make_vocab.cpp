#include "model/make_vocab.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"

namespace millrace {
namespace {

constexpr int32_t kNormal = 1, kControl = 3, kUnused = 5;

bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// The character that byte-level BPE writes for each byte: printable ones stand for themselves, the
// others take the code points from 256 on.
std::vector<std::string> byte_characters() {
  std::vector<std::string> out;
  char32_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    std::string character;
    append_utf8(character, stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++);
    out.push_back(character);
  }
  return out;
}

// Adds words of growing length until there are n tokens.
void add_words(MadeVocab& vocab, size_t n, const std::vector<std::string>& bytes) {
  std::vector<std::string> stems = {bytes[' ']};
  for (char c = 'a'; c <= 'z'; ++c) stems.push_back(bytes[static_cast<size_t>(c)]);
  const std::vector<std::string> letters(stems.begin() + 1, stems.end());
  while (true) {
    std::vector<std::string> longer;
    for (const std::string& stem : stems)
      for (const std::string& letter : letters) {
        if (vocab.tokens.size() == n) return;
        vocab.tokens.push_back(stem + letter);
        vocab.types.push_back(kNormal);
        vocab.merges.push_back(fmt::format("{} {}", stem, letter));
        longer.push_back(stem + letter);
      }
    stems = std::move(longer);
  }
}

void add_special(MadeVocab& vocab, const std::vector<std::string_view>& names) {
  for (const std::string_view name : names) {
    vocab.tokens.emplace_back(name);
    vocab.types.push_back(kControl);
  }
}

}  // namespace

int64_t MadeVocab::id_of(std::string_view token) const {
  const auto at = std::find(tokens.begin(), tokens.end(), token);
  return at == tokens.end() ? -1 : at - tokens.begin();
}

MadeVocab make_vocab(int64_t size, const SpecialTokens& special) {
  const auto n_special = static_cast<int64_t>(special.names.size());
  MILLRACE_CHECK(size >= 256 + n_special + special.n_reserved, "a vocabulary of {}", size);
  MadeVocab vocab;
  if (special.first) add_special(vocab, special.names);
  const std::vector<std::string> bytes = byte_characters();
  for (const std::string& byte : bytes) {
    vocab.tokens.push_back(byte);
    vocab.types.push_back(kNormal);
  }
  const int64_t after = special.n_reserved + (special.first ? 0 : n_special);
  add_words(vocab, static_cast<size_t>(size - after), bytes);
  if (!special.first) add_special(vocab, special.names);
  for (int64_t i = 0; i < special.n_reserved; ++i) {
    vocab.tokens.push_back(fmt::format("<|reserved_{}|>", i));
    vocab.types.push_back(kUnused);
  }
  return vocab;
}

}  // namespace millrace
