// One choice of an answer out of its tokens: reasoning, text and tool calls as events. What it
// gives depends on the tokens alone, so an answer that was stored can be read again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "serve/answer.h"
#include "text/output/output_parser.h"

namespace millrace::serve {

class ChoiceReader {
 public:
  using MakeCallId = std::function<std::string(int call)>;
  // The tokenizer outlives it.
  ChoiceReader(const Tokenizer& tokenizer, OutputRules rules, int choice, MakeCallId call_id);

  // Appends what became certain; an event without a token is the last.
  void push(const TokenEvent& token, std::vector<AnswerEvent>& out);
  int64_t n_reasoning() const { return n_reasoning_; }  // tokens of reasoning so far
  // How it ended, as clients are told.
  FinishReason reason(Finish finish) const;

 private:
  const Tokenizer& tokenizer_;
  OutputParser parser_;
  const int choice_;
  const MakeCallId call_id_;
  bool in_reasoning_;
  int64_t n_reasoning_ = 0;
  std::vector<OutputEvent> parsed_;
};

// Nine letters and digits where the model's own template wants no more.
size_t call_id_letters(ToolFormat format);
std::string call_id(ToolFormat format, std::string_view letters);

}  // namespace millrace::serve
