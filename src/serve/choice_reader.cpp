#include "serve/choice_reader.h"

#include <algorithm>

namespace millrace::serve {
namespace {

bool is_short(ToolFormat format) {
  return format == ToolFormat::mistral || format == ToolFormat::mistral_args;
}

AnswerEvent::Kind kind_of(OutputEvent::Kind kind) {
  switch (kind) {
    case OutputEvent::Kind::reasoning:
      return AnswerEvent::Kind::reasoning;
    case OutputEvent::Kind::content:
      return AnswerEvent::Kind::text;
    case OutputEvent::Kind::call_begin:
      return AnswerEvent::Kind::call_begin;
    case OutputEvent::Kind::call_arguments:
      return AnswerEvent::Kind::call_arguments;
    case OutputEvent::Kind::call_end:
      return AnswerEvent::Kind::call_end;
  }
  return AnswerEvent::Kind::text;
}

}  // namespace

size_t call_id_letters(ToolFormat format) {
  return is_short(format) ? 9 : 24;
}

std::string call_id(ToolFormat format, std::string_view letters) {
  return (is_short(format) ? "" : "call_") + std::string(letters);
}

ChoiceReader::ChoiceReader(const Tokenizer& tokenizer, OutputRules rules, int choice,
                           MakeCallId call_id)
    : tokenizer_(tokenizer),
      parser_(rules),
      choice_(choice),
      call_id_(std::move(call_id)),
      in_reasoning_(rules.in_reasoning) {}

void ChoiceReader::push(const TokenEvent& token, std::vector<AnswerEvent>& out) {
  if (!token.text.empty()) parser_.push(token.text, parsed_);
  if (token.is_control && token.token != nullptr)
    parser_.push_control(tokenizer_.piece(token.token->token), parsed_);
  if (token.token == nullptr) parser_.finish(parsed_);
  const bool was_reasoning = in_reasoning_;
  for (OutputEvent& event : parsed_) {
    AnswerEvent one{.kind = kind_of(event.kind), .choice = choice_};
    one.call = std::max(event.call, 0);
    one.text = std::move(event.text);
    if (event.kind == OutputEvent::Kind::call_begin) one.call_id = call_id_(one.call);
    in_reasoning_ = event.kind == OutputEvent::Kind::reasoning;
    out.push_back(std::move(one));
  }
  parsed_.clear();
  if (token.token != nullptr) n_reasoning_ += was_reasoning || in_reasoning_;
}

FinishReason ChoiceReader::reason(Finish finish) const {
  switch (finish) {
    case Finish::end:
      return parser_.n_calls() > 0 ? FinishReason::tool_calls : FinishReason::end;
    case Finish::stop_string:
      return FinishReason::stop_string;
    case Finish::length:
      return FinishReason::length;
    default:
      return FinishReason::cancelled;
  }
}

}  // namespace millrace::serve
