// The pre-tokenisers that GGUF files go by name (tokenizer.ggml.pre): what the tokenizer.json of
// the model family says, since GGUF does not repeat it. The expressions are the families' own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer/normalize.h"
#include "text/tokenizer/split.h"

namespace millrace {

struct PreRule {
  std::vector<NormalizeStep> normalize;
  std::vector<SplitStep> split;
  bool ignore_merges = false;  // a word that is a token stays whole
  bool add_bos = false;        // when the file does not say
};

Result<PreRule> pre_rule_named(std::string_view name);

// The name of the rule that does this to text, however the expressions are spelled; empty: none.
std::string_view pre_rule_name(const std::vector<NormalizeStep>& normalize,
                               const std::vector<SplitStep>& split, bool ignore_merges);

// GPT-2's expression, which tokenizer.json's ByteLevel implies.
std::string_view gpt2_pattern();

}  // namespace millrace
