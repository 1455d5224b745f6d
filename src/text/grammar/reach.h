// Which tokens a lexeme takes from one of its states, and where it can be over inside a token: the
// part of a mask that does not depend on what surrounds the lexeme, computed by one pass over the
// trie and kept where that pass was long.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/grammar/lexeme.h"
#include "text/grammar/token_trie.h"

namespace millrace::grammar {

inline constexpr uint64_t kAnyKind = UINT64_MAX;

struct Reach {
  // Tokens that the lexeme takes whole: a list, or the bits of a mask where those are smaller.
  std::vector<int32_t> tokens;
  std::vector<uint32_t> bits;
  // Children of the trie's nodes at which the lexeme may be over: what follows goes on there. By
  // their byte: those of groups[i].byte are exits[groups[i].begin, groups[i + 1].begin).
  std::vector<int32_t> exits;
  struct Group {
    uint8_t byte = 0;
    uint32_t begin = 0;
  };
  std::vector<Group> groups;  // and one more at the end
  size_t visited = 0;         // nodes of the trie

  void add_to(std::span<uint32_t> mask) const;
  size_t heap_bytes() const;
};

// Below `node`; the lexeme is in `state` there. Exits are left out unless their byte is of a kind
// (TokenTrie::kind_of) in `follow`.
Reach reach_of(const Lexeme& lexeme, Lexeme::State state, const TokenTrie& trie, int32_t node,
               uint64_t follow = kAnyKind);

// What a counted JSON string adds, from where its next character begins (Standard::body).
struct StringReach {
  Reach reach;
  // Of each token: how many characters it begins; kNone for those not in `reach`.
  static constexpr uint8_t kNone = 255, kMost = 254;
  std::vector<uint8_t> chars;
  std::vector<int32_t> closing;     // tokens of `reach` that end with the string
  std::vector<uint8_t> exit_chars;  // of each exit
};
StringReach string_reach_of(const TokenTrie& trie);

}  // namespace millrace::grammar
