// Which tokens an answer may be made of: those that a grammar allows, the end of reasoning where
// its budget is spent, or a text that is dictated (for tests of clients).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "text/grammar/matcher.h"
#include "text/grammar/token_grammar.h"

namespace millrace::serve {

class AnswerRule final : public TokenRule {
 public:
  explicit AnswerRule(int64_t n_vocab) : bits_(static_cast<size_t>((n_vocab + 31) / 32)) {}

  // `prefill`: what the answer begins with already.
  void hold_to(std::shared_ptr<const grammar::TokenGrammar> grammar, std::string_view prefill);
  // After n tokens of reasoning `close` comes. `inside`: the prompt has opened it.
  void bound_reasoning(int64_t n, int32_t open, int32_t close, bool inside);
  // These tokens, and then an end token, whatever the model would say.
  void dictate(std::vector<int32_t> tokens, int32_t end);

  std::span<const uint32_t> allowed() override;
  Status took(int32_t token) override;

 private:
  std::span<const uint32_t> only(int32_t token);

  std::vector<uint32_t> bits_;
  std::shared_ptr<const grammar::TokenGrammar> grammar_;
  std::optional<grammar::Matcher> matcher_;
  int64_t n_left_ = -1;  // of the budget; -1: there is none
  int32_t open_ = -1, close_ = -1;
  bool in_reasoning_ = false;
  std::vector<int32_t> dictated_;
  size_t n_said_ = 0;
};

}  // namespace millrace::serve
