// A grammar over one vocabulary, with the parts of masks that were computed for it so far. Shared
// by the requests (and threads) that use the grammar; worth keeping as long as they may come again.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "text/grammar/grammar.h"
#include "text/grammar/reach.h"

namespace millrace::grammar {

// A vocabulary made ready for grammars: its trie, and what its tokens are inside a JSON string,
// where most of JSON's text lies. Once per model: 0.1 s and about 15 MB for 150,000 tokens.
struct Vocabulary {
  explicit Vocabulary(TokenTrie tokens)
      : trie(std::move(tokens)), in_string(string_reach_of(trie)) {}
  explicit Vocabulary(const Tokenizer& tokenizer) : Vocabulary(TokenTrie(tokenizer)) {}
  TokenTrie trie;
  StringReach in_string;
};

class TokenGrammar {
 public:
  // The vocabulary must outlive it.
  TokenGrammar(Grammar grammar, const Vocabulary& vocabulary);

  const Graph& graph() const { return grammar_.graph(); }
  const Vocabulary& vocabulary() const { return vocabulary_; }

  // Control tokens that may stand for a marker, by the marker's node; -1: none.
  int32_t token_of_marker(int32_t node) const;

  // What was kept of this reach, or `scratch`, which then holds it.
  struct Key {
    const Lexeme* lexeme;
    Lexeme::State state;
    int32_t trie_node;
    uint64_t follow = kAnyKind;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  const Reach& reach(const Key& key, Reach& scratch) const;

 private:
  const Reach* find(const Key& key) const;

  Grammar grammar_;
  const Vocabulary& vocabulary_;
  std::map<int32_t, int32_t> markers_;
  mutable std::mutex mutex_;
  mutable std::map<Key, std::unique_ptr<const Reach>> kept_;
  mutable size_t kept_bytes_ = 0;
};

}  // namespace millrace::grammar
