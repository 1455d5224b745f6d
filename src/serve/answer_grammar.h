// What an answer must look like, as a grammar: a JSON schema or object, the calls that a tool
// choice demands, the arguments of strict tools. Reasoning before it stays free.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "serve/api_request.h"
#include "text/grammar/grammar.h"
#include "text/output/format.h"

namespace millrace::serve {

struct AnswerShape {
  const ApiRequest& request;
  const OutputFormat& format;
  bool in_reasoning = false;  // the prompt ends inside reasoning
};

// Nothing where the answer is free. What is asked for and cannot be held is in `warnings`, or an
// error where it is strict.
Result<std::optional<grammar::Grammar>> answer_grammar(const AnswerShape& shape,
                                                       std::vector<std::string>& warnings);

// Whether there is one, without compiling it.
bool has_grammar(const ApiRequest& request);
// What the grammar depends on, as text: to keep compiled ones by.
std::string grammar_key(const AnswerShape& shape);

}  // namespace millrace::serve
