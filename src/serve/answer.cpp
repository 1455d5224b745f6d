#include "serve/answer.h"

namespace millrace::serve {

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
  AnswerChoice& choice = choices[index];
  switch (event.kind) {
    case reasoning:
      choice.reasoning += event.text;
      break;
    case text:
      choice.text += event.text;
      break;
    case call_begin:
      choice.calls.push_back({.id = event.call_id, .name = event.text});
      break;
    case call_arguments:
      choice.calls[static_cast<size_t>(event.call)].arguments += event.text;
      break;
    case tokens:
      choice.tokens.insert(choice.tokens.end(), event.tokens.begin(), event.tokens.end());
      break;
    case finished:
      choice.finish = event.finish;
      choice.stop_string = event.stop_string;
      break;
    default:
      break;
  }
}

}  // namespace millrace::serve
