// Which pre-tokenizer a GGUF file wants that does not name one (tokenizer.ggml.pre came in 2024):
// the vocabularies of model families differ, and where their control tokens lie tells them apart.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace millrace {

struct PreGuess {
  std::string_view name;  // for pre_rule_named(); empty: the vocabulary is of no family we know
  std::string why;        // the tokens that tell
};

PreGuess guess_pre_rule(std::span<const std::string> tokens);

}  // namespace millrace
