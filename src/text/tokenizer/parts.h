// What a Tokenizer holds after its Vocab was checked: tables to look things up in, immutable and
// shared by threads. Private to model/tokenizer.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/merge.h"
#include "text/tokenizer/split.h"
#include "text/tokenizer/text_index.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace {

struct Tokenizer::Parts {
  Vocab vocab;                 // merges moved into `pairs`
  std::string bytes;           // of all tokens, one after the other
  std::vector<uint32_t> ends;  // where each token's bytes end
  TextIndex words;             // tokens that text may become, by what they look like in a word
  std::array<int32_t, 256> byte_ids;  // the token of a lone byte; -1: none
  PairTable pairs;
  std::vector<uint32_t> ranks;  // by id: the place of its score among all scores
  AddedTokens added;            // looked for in the text as it came
  AddedTokens normalized;       // ... and in the normalised text
  Splitter splitter;
  std::vector<int32_t> eog;  // sorted

  std::string_view piece(int32_t id) const;
  bool exists(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < ends.size(); }
  TokenType type(int32_t id) const { return vocab.types[static_cast<size_t>(id)]; }
};

}  // namespace millrace
