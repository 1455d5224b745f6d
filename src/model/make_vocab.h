// A byte-level BPE vocabulary of any size that nobody trained: the 256 bytes, then every word over
// space and the letters a to z in order of length, each made of the word before its last letter and
// that letter, then the special tokens where the model it stands for has them. Any text can be
// encoded with it and comes back the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

struct SpecialTokens {
  std::vector<std::string_view> names;  // in order
  bool first = false;                   // before all others; else right behind the words
  int64_t n_reserved = 0;               // unused ones at the very end
};

struct MadeVocab {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;  // GGUF's: 1 normal, 3 control, 5 unused
  std::vector<std::string> merges;

  int64_t id_of(std::string_view token) const;  // -1: none
};

// `size` at least 256 and the special and reserved ones.
MadeVocab make_vocab(int64_t size, const SpecialTokens& special);

}  // namespace millrace
