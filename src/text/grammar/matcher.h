// One request against a grammar: which tokens may come next, and the state after one came. Not
// shared between threads; copies are independent and cheap (the choices of one request, a replay).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "text/grammar/stacks.h"
#include "text/grammar/token_grammar.h"

namespace millrace::grammar {

class Matcher {
 public:
  // The grammar must outlive it.
  explicit Matcher(const TokenGrammar& grammar);

  // Bit i % 32 of word i / 32: token i may come next. `bits` has a word for every 32 tokens of the
  // vocabulary; words past it are cleared. No bit at all: the text has ended, or the vocabulary
  // cannot spell what must come.
  void mask(std::span<uint32_t> bits);
  // Fails, and changes nothing, on a token that the mask does not allow.
  Status accept(int32_t token);
  // The same by text, where there are no tokens; never takes an end token.
  Status accept_text(std::string_view text);

  // The text so far satisfies the grammar: an end token is allowed.
  bool is_complete() const;
  // ... and nothing but an end token.
  bool must_end() const;
  // An end token came.
  bool ended() const { return ended_; }
  // What must come next, byte for byte; empty where there is a choice. Not always whole characters.
  std::string forced();

 private:
  const TokenGrammar* grammar_;
  Stacks stacks_;
  bool ended_ = false;
};

}  // namespace millrace::grammar
