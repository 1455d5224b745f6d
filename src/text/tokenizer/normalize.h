// What is done to text before it is cut into words: Unicode normalisation and plain replacements, a
// list of steps as tokenizer.json states them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace {

struct NormalizeStep {
  enum class Kind : unsigned char {
    nfc,
    nfd,
    nfkc,
    nfkd,
    prepend,          // `to` before the text
    prepend_missing,  // ... unless it begins with it
    prepend_first,    // ... unless it begins with it or does not begin its prompt
    replace           // every `from` becomes `to`
  };
  Kind kind = Kind::nfc;
  std::string from, to;

  bool operator==(const NormalizeStep&) const = default;
};

// `text` is valid UTF-8 and stays it. `first`: it begins its prompt. An empty text stays empty.
// Whoever reads the steps bounds their number and lengths, and that `from` is not empty.
std::string normalize(std::string text, const std::vector<NormalizeStep>& steps, bool first);

}  // namespace millrace
