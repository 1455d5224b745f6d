// For the tests of this folder: a small vocabulary, whether a grammar takes a text, and a validator
// of JSON schemas that knows nothing of how they are compiled.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/grammar/matcher.h"

namespace millrace::grammar::test {

// All bytes at their own ids, then tokens as JSON and text have them.
const Vocabulary& small_vocabulary();
inline constexpr int32_t kEnd = 256;
inline constexpr int32_t kToolId = 257;  // the control token <tool_call>; 258 is another one

// Whether the text is one of the grammar's, by its bytes.
bool accepts(const Grammar& grammar, std::string_view text);

// The same by a random cut into tokens that the masks allow. Each token must be accepted as well.
bool accepts_in_tokens(const TokenGrammar& grammar, std::string_view text, uint64_t seed);

// Whether the instance satisfies the schema, for the keywords that random schemas use.
bool validates(const nlohmann::ordered_json& schema, const nlohmann::ordered_json& instance,
               const nlohmann::ordered_json& root);

}  // namespace millrace::grammar::test
