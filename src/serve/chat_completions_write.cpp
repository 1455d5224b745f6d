#include <fmt/format.h>

#include <vector>

#include "serve/chat_completions.h"
#include "serve/openai_shapes.h"

namespace millrace::serve::chat_completions {
namespace {

Json head_of(const AnswerHead& head, std::string_view object) {
  return {{"id", "chatcmpl-" + head.id},
          {"object", object},
          {"created", head.created_s},
          {"model", head.model},
          {"system_fingerprint", head.fingerprint}};
}

Json message_of(const AnswerChoice& choice) {
  const bool wordless = choice.text.empty() && !choice.calls.empty();
  Json message = {{"role", "assistant"}};
  message["content"] = wordless ? Json() : Json(choice.text);
  message["refusal"] = nullptr;
  if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
  for (const ToolCall& call : choice.calls) {
    const Json function = {{"name", call.name}, {"arguments", call.arguments}};
    message["tool_calls"].push_back(
        Json::object({{"id", call.id}, {"type", "function"}, {"function", function}}));
  }
  return message;
}

class Writer : public StreamWriter {
 public:
  Writer(const ApiRequest& request, const AnswerHead& head)
      : head_(head_of(head, "chat.completion.chunk")),
        warnings_(request.warnings),
        logprobs_(request.sampling.logprob),
        include_usage_(request.include_usage),
        wants_progress_(request.wants_progress) {}

  std::string write(const AnswerEvent& event) override;

 private:
  struct Choice {
    bool begun = false;                   // its role was sent
    std::vector<TokenShown> tokens = {};  // drawn and not sent yet
  };

  Choice& choice(const AnswerEvent& event);
  std::string begin(const AnswerEvent& event);
  Json chunk(const AnswerEvent& event, Json delta) const;
  Json chunk_with_tokens(const AnswerEvent& event, Json delta);
  std::string delta(const AnswerEvent& event, Json delta) {
    std::string out = begin(event);
    return out += sse(chunk_with_tokens(event, std::move(delta)));
  }
  std::string progress(const AnswerEvent& event);
  std::string call(const AnswerEvent& event);
  std::string finished(const AnswerEvent& event);
  std::string done(const AnswerEvent& event);

  const Json head_;
  std::vector<std::string> warnings_;  // until they are sent
  const bool logprobs_, include_usage_, wants_progress_;
  uint64_t seed_ = 0;
  std::vector<Choice> choices_ = {};
};

Writer::Choice& Writer::choice(const AnswerEvent& event) {
  const auto index = static_cast<size_t>(event.choice);
  if (choices_.size() <= index) choices_.resize(index + 1);
  return choices_[index];
}

// The chunk with the role, before the first of each choice.
std::string Writer::begin(const AnswerEvent& event) {
  if (std::exchange(choice(event).begun, true)) return {};
  // Nothing but a call means no content, as in a whole answer.
  const bool calls = event.kind == AnswerEvent::Kind::call_begin;
  Json delta = {{"role", "assistant"}};
  delta["content"] = calls ? Json() : Json("");
  Json first = chunk(event, std::move(delta));
  if (!warnings_.empty()) first["warnings"] = std::exchange(warnings_, {});
  return sse(first);
}

Json Writer::chunk(const AnswerEvent& event, Json delta) const {
  Json one = {{"index", event.choice}, {"delta", std::move(delta)}, {"finish_reason", nullptr}};
  if (logprobs_) one["logprobs"] = nullptr;
  Json out = head_;
  out["choices"] = Json::array({std::move(one)});
  return out;
}

// A chunk with what was drawn since the last one.
Json Writer::chunk_with_tokens(const AnswerEvent& event, Json delta) {
  Json out = chunk(event, std::move(delta));
  auto& tokens = choice(event).tokens;
  if (logprobs_ && !tokens.empty()) out["choices"][0]["logprobs"] = openai_logprobs(tokens);
  tokens.clear();
  return out;
}

std::string Writer::progress(const AnswerEvent& event) {
  if (!wants_progress_) return {};
  Json out = chunk(event, Json::object());
  out["prompt_progress"] = {{"total", event.usage.n_prompt},
                            {"cache", event.usage.n_cached},
                            {"processed", event.n_done},
                            {"time_ms", event.usage.prompt_s * 1e3}};
  return sse(out);
}

std::string Writer::call(const AnswerEvent& event) {
  Json one = {{"index", event.call}};
  if (event.kind == AnswerEvent::Kind::call_begin) {
    one["id"] = event.call_id;
    one["type"] = "function";
    one["function"] = {{"name", event.text}, {"arguments", ""}};
  } else {
    one["function"] = {{"arguments", event.text}};
  }
  Json delta_json = Json::object();
  delta_json["tool_calls"] = Json::array({std::move(one)});
  return delta(event, std::move(delta_json));
}

std::string Writer::finished(const AnswerEvent& event) {
  const std::string first = begin(event);
  Json out = chunk_with_tokens(event, Json::object());
  out["choices"][0]["finish_reason"] = openai_finish(event.finish);
  out["timings"] = timings(event.usage);
  out["seed"] = seed_;
  return first + sse(out);
}

std::string Writer::done(const AnswerEvent& event) {
  std::string out;
  if (include_usage_) {
    Json last = head_;
    last["choices"] = Json::array();
    last["usage"] = openai_usage(event.usage);
    out = sse(last);
  }
  return out + "data: [DONE]\n\n";
}

std::string Writer::write(const AnswerEvent& event) {
  using enum AnswerEvent::Kind;
  switch (event.kind) {
    case accepted:
      seed_ = event.seed;
      return {};
    case progress:
      return this->progress(event);
    case reasoning:
      return delta(event, {{"reasoning_content", event.text}});
    case text:
      return delta(event, {{"content", event.text}});
    case call_begin:
    case call_arguments:
      return call(event);
    case call_end:
      return {};
    case tokens: {
      auto& held = choice(event).tokens;
      held.insert(held.end(), event.tokens.begin(), event.tokens.end());
      return {};
    }
    case finished:
      return this->finished(event);
    case done:
      return this->done(event);
    case failed:
      return sse(openai_error(event.error)) + "data: [DONE]\n\n";
  }
  return {};
}

}  // namespace

std::unique_ptr<StreamWriter> stream(const ApiRequest& request, const AnswerHead& head) {
  return std::make_unique<Writer>(request, head);
}

Json whole(const ApiRequest& request, const AnswerHead& head, const Answer& answer) {
  Json out = head_of(head, "chat.completion");
  Json& choices = out["choices"] = Json::array();
  for (const AnswerChoice& choice : answer.choices) {
    Json one = {{"index", choices.size()}, {"message", message_of(choice)}};
    one["logprobs"] = request.sampling.logprob ? openai_logprobs(choice.tokens) : Json();
    one["finish_reason"] = openai_finish(choice.finish);
    choices.push_back(std::move(one));
  }
  out["usage"] = openai_usage(answer.usage);
  out["timings"] = timings(answer.usage);
  out["seed"] = answer.seed;
  if (!request.warnings.empty()) out["warnings"] = request.warnings;
  return out;
}

}  // namespace millrace::serve::chat_completions
