#include "serve/answer.h"

namespace millrace::serve {

void AnswerChoice::add(const AnswerEvent& event) {
  switch (event.kind) {
    case AnswerEvent::Kind::reasoning:
      reasoning += event.text;
      break;
    case AnswerEvent::Kind::text:
      text += event.text;
      break;
    case AnswerEvent::Kind::call_begin:
      calls.push_back({.id = event.call_id, .name = event.text});
      break;
    case AnswerEvent::Kind::call_arguments:
      calls[static_cast<size_t>(event.call)].arguments += event.text;
      break;
    case AnswerEvent::Kind::tokens:
      tokens.insert(tokens.end(), event.tokens.begin(), event.tokens.end());
      break;
    case AnswerEvent::Kind::finished:
      finish = event.finish;
      stop_string = event.stop_string;
      break;
    default:
      break;
  }
}

void Answer::add(const AnswerEvent& event) {
  using enum AnswerEvent::Kind;
  if (event.kind == accepted) seed = event.seed;
  if (event.kind == accepted || event.kind == done) usage = event.usage;
  if (event.kind == failed) error = event.error;
  if (event.kind == accepted || event.kind == progress || event.kind == done ||
      event.kind == failed)
    return;
  const auto index = static_cast<size_t>(event.choice);
  if (choices.size() <= index) choices.resize(index + 1);
  choices[index].add(event);
}

}  // namespace millrace::serve
