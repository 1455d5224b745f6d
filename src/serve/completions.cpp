#include "serve/completions.h"

#include <fmt/format.h>

#include <utility>

#include "serve/json_read.h"
#include "serve/openai_shapes.h"
#include "serve/request_fields.h"

namespace millrace::serve::completions {
namespace {

bool is_tokens(const Field& prompt) {
  return prompt.is_array() && !prompt.json().empty() && prompt.json()[0].is_number();
}

Prompt read_prompt(const Field& prompt) {
  if (!is_tokens(prompt)) return prompt.text();
  std::vector<int32_t> tokens;
  for (const Field& token : prompt.elements())
    tokens.push_back(static_cast<int32_t>(token.integer(0, INT32_MAX).value_or(0)));
  return tokens;
}

// One text, one list of tokens, or a list of either.
void read_prompts(const Field& prompt, ApiRequest& out) {
  prompt.required();
  if (!prompt.is_array() || is_tokens(prompt)) {
    out.prompts.push_back(read_prompt(prompt));
    return;
  }
  const size_t n = prompt.json().size();
  if (n == 0) return prompt.fail("is empty");
  if (n * static_cast<size_t>(out.n) > kMaxChoices)
    return prompt.fail(fmt::format(
        "has {} texts with {} choices each; at most {} choices are taken", n, out.n, kMaxChoices));
  for (const Field& one : prompt.elements()) out.prompts.push_back(read_prompt(one));
}

// Fields that change the answer and are not done here.
void refuse(const Field& body, const ApiRequest& out) {
  if (const Field field = body["suffix"]; field.given() && field.json() != "")
    field.not_supported();
  if (const Field field = body["best_of"]; field.integer(1, kMaxChoices).value_or(out.n) != out.n)
    field.not_supported("use n");
  if (body["grammar"].given()) body["grammar"].not_supported("use response_format");
  if (out.echo && out.sampling.logprob)
    body["logprobs"].not_supported("with echo, which would need those of the prompt");
}

Json head_of(const AnswerHead& head) {
  return {{"id", "cmpl-" + head.id},
          {"object", "text_completion"},
          {"created", head.created_s},
          {"model", head.model},
          {"system_fingerprint", head.fingerprint}};
}

int64_t count_characters(std::string_view text) {
  int64_t n = 0;
  for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

// The lists that this dialect has in place of chat completions' objects. `offset` is where the
// next token begins in the text, in characters.
Json logprobs_of(const std::vector<TokenShown>& tokens, int64_t& offset) {
  Json texts = Json::array(), values = Json::array(), tops = Json::array(), at = Json::array();
  for (const TokenShown& token : tokens) {
    texts.push_back(token.text);
    values.push_back(token.logprob);
    at.push_back(offset);
    offset += count_characters(token.text);
    Json top = Json::object();
    for (const TokenShown& other : token.most_likely) top[other.text] = other.logprob;
    tops.push_back(std::move(top));
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(at)}};
}

class Writer : public StreamWriter {
 public:
  Writer(const ApiRequest& request, const AnswerHead& head)
      : head_(head_of(head)),
        logprobs_(request.sampling.logprob),
        include_usage_(request.include_usage) {}

  std::string write(const AnswerEvent& event) override;

 private:
  struct Choice {
    std::vector<TokenShown> tokens = {};  // drawn and not sent yet
    int64_t offset = 0;
  };

  Choice& choice(const AnswerEvent& event);
  Json chunk(const AnswerEvent& event, const std::string& text);
  std::string finished(const AnswerEvent& event);
  std::string done(const AnswerEvent& event) const;

  const Json head_;
  const bool logprobs_, include_usage_;
  uint64_t seed_ = 0;
  std::vector<Choice> choices_ = {};
};

Writer::Choice& Writer::choice(const AnswerEvent& event) {
  const auto index = static_cast<size_t>(event.choice);
  if (choices_.size() <= index) choices_.resize(index + 1);
  return choices_[index];
}

Json Writer::chunk(const AnswerEvent& event, const std::string& text) {
  Json one = {{"index", event.choice}, {"text", text}, {"logprobs", nullptr}};
  Choice& of = choice(event);
  if (logprobs_ && !of.tokens.empty()) one["logprobs"] = logprobs_of(of.tokens, of.offset);
  of.tokens.clear();
  one["finish_reason"] = nullptr;
  Json out = head_;
  out["choices"] = Json::array({std::move(one)});
  return out;
}

std::string Writer::finished(const AnswerEvent& event) {
  Json out = chunk(event, "");
  out["choices"][0]["finish_reason"] = event.finish == FinishReason::length ? "length" : "stop";
  out["timings"] = timings(event.usage);
  out["seed"] = seed_;
  return sse(out);
}

std::string Writer::done(const AnswerEvent& event) const {
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
    case text:
      return sse(chunk(event, event.text));
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
    default:
      return {};
  }
}

}  // namespace

ApiResult<ApiRequest> parse(const Json& json, const HeaderOf& header) {
  Reading reading;
  const Field body(json, reading);
  ApiRequest out;
  read_common(body, header, out);
  out.n = static_cast<int>(body["n"].integer(1, kMaxChoices).value_or(1));
  out.echo = body["echo"].flag();
  read_prompts(body["prompt"], out);
  const int64_t default_tokens = 16;  // as OpenAI has it
  out.max_tokens = read_max_tokens(body["max_tokens"]);
  if (out.max_tokens < 0) out.max_tokens = default_tokens;
  out.stops = read_stops(body["stop"]);
  read_biases(body["logit_bias"], out.sampling);
  const auto logprobs = body["logprobs"].integer(0, 20);
  out.sampling.logprob = logprobs.has_value();
  out.sampling.n_logprobs = static_cast<int>(logprobs.value_or(0));
  const Field format = body["response_format"];
  out.format = read_format(format, format.is_object() ? format["json_schema"] : format);
  out.include_usage = body["stream_options"]["include_usage"].flag();
  refuse(body, out);
  return finish(std::move(out), std::move(reading));
}

std::unique_ptr<StreamWriter> stream(const ApiRequest& request, const AnswerHead& head) {
  return std::make_unique<Writer>(request, head);
}

Json whole(const ApiRequest& request, const AnswerHead& head, const Answer& answer) {
  Json out = head_of(head);
  Json& choices = out["choices"] = Json::array();
  for (const AnswerChoice& choice : answer.choices) {
    int64_t offset = 0;
    Json one = {{"index", choices.size()}, {"text", choice.text}};
    one["logprobs"] = request.sampling.logprob ? logprobs_of(choice.tokens, offset) : Json();
    one["finish_reason"] = choice.finish == FinishReason::length ? "length" : "stop";
    choices.push_back(std::move(one));
  }
  out["usage"] = openai_usage(answer.usage);
  out["timings"] = timings(answer.usage);
  out["seed"] = answer.seed;
  if (!request.warnings.empty()) out["warnings"] = request.warnings;
  return out;
}

}  // namespace millrace::serve::completions
