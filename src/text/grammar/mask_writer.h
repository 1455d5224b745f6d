// Writes the mask of a set of stacks. Tokens are looked for stack by stack: a literal follows one
// path of the trie, a lexeme adds what it reaches whole and goes on behind it where it is over
// inside a token. Small subtrees are walked with the whole set instead.
#pragma once

#include <cstdint>
#include <span>

#include "text/grammar/stacks.h"
#include "text/grammar/token_grammar.h"

namespace millrace::grammar {

class MaskWriter {
 public:
  // Bits of `mask` are only ever set; it has room for all tokens. `stacks` is as before in the end.
  MaskWriter(const TokenGrammar& grammar, Stacks& stacks, std::span<uint32_t> mask);

  void write();

 private:
  void allow(int32_t token) {
    mask_[static_cast<size_t>(token) / 32] |= 1u << (static_cast<uint32_t>(token) % 32);
  }
  void allow_tokens_of(int32_t trie_node) {
    for (const int32_t token : trie_.tokens(trie_node)) allow(token);
  }
  // Tokens that go on below the trie's node.
  void below(int32_t trie_node, const Config& config);
  void below(int32_t trie_node, Stacks::Set set);
  void walk(int32_t trie_node, Stacks::Set set);
  void literal(int32_t trie_node, const Config& config);
  void lexeme(int32_t trie_node, const Config& config, const Lexeme& lexeme, bool text);
  uint64_t kinds_after(const Config& config);
  void string(int32_t trie_node, const Config& config);
  void string_body(const Config& config);
  void counted(int32_t trie_node, const Config& config);
  void exits(const Config& config, const Reach& reach, std::span<const uint8_t> chars,
             uint32_t least, uint32_t most);

  const TokenGrammar& grammar_;
  const TokenTrie& trie_;
  Stacks& stacks_;
  std::span<uint32_t> mask_;
};

}  // namespace millrace::grammar
