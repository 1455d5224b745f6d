#include "serve/prepare.h"

namespace millrace::serve {
namespace {

template <class T>
void take(T& out, const std::optional<T>& asked) {
  if (asked) out = *asked;
}

bool uses_tools(const ApiRequest& request) {
  return request.chat.tools.is_array() && !request.chat.tools.empty() &&
         request.tool_choice.kind != ToolChoice::Kind::none;
}

Json& variable(ChatInput& input, const char* name) {
  if (!input.variables.is_object()) input.variables = Json::object();
  return input.variables[name];
}

}  // namespace

Sampling overlay(Sampling base, const AskedSampling& asked) {
  take(base.temperature, asked.temperature);
  take(base.top_p, asked.top_p);
  take(base.min_p, asked.min_p);
  take(base.top_k, asked.top_k);
  take(base.repeat_penalty, asked.repeat_penalty);
  take(base.presence_penalty, asked.presence_penalty);
  take(base.frequency_penalty, asked.frequency_penalty);
  take(base.seed, asked.seed);
  if (!asked.biases.empty()) base.biases = asked.biases;
  base.logprob |= asked.logprob;
  base.n_logprobs = std::max(base.n_logprobs, asked.n_logprobs);
  return base;
}

Preparer::Preparer(const LanguageModel& model, PrepareOptions options)
    : model_(model), options_(std::move(options)) {
  const Tokenizer& tokenizer = model_.tokenizer();
  format_ = find_output_format(model_.template_source(), [&](std::string_view text) {
    return tokenizer.special_id(text) >= 0;
  });
}

// Templates know thinking by these names; those that do not look at them do as they always do.
ChatInput Preparer::chat_input(const ApiRequest& request) const {
  ChatInput input = request.chat;
  if (!input.now) input.now = options_.date;
  if (!uses_tools(request)) input.tools = nullptr;
  if (request.reasoning.enabled) variable(input, "enable_thinking") = *request.reasoning.enabled;
  if (!request.reasoning.effort.empty())
    variable(input, "reasoning_effort") = request.reasoning.effort;
  return input;
}

Result<Preparer::Rendered> Preparer::render(const ApiRequest& request, bool add_generation_prompt,
                                            const std::atomic<bool>* stop) const {
  ChatInput input = chat_input(request);
  input.add_generation_prompt = add_generation_prompt;
  MILLRACE_ASSIGN(auto rendered, model_.chat_template().render(input, stop));
  if (!request.prefill.empty()) rendered.pieces.push_back({request.prefill, false});
  Rendered out;
  std::vector<TextPart> parts;
  for (const auto& piece : rendered.pieces) {
    parts.push_back({piece.text, piece.from_template});
    out.text += piece.text;
  }
  MILLRACE_ASSIGN(out.tokens, model_.tokenizer().encode(parts));
  return out;
}

Generation Preparer::generation(const ApiRequest& request) const {
  Generation how;
  how.sampling = overlay(overlay(overlay(how.sampling, options_.from_model), options_.from_flags),
                         request.sampling);
  how.max_tokens = request.max_tokens;
  how.stops = request.stops;
  how.ignore_end = request.ignore_end;
  return how;
}

ApiError Preparer::check_length(size_t n_tokens) const {
  if (static_cast<int64_t>(n_tokens) < options_.max_prompt_tokens) return {};
  return {.kind = ApiError::Kind::context_length,
          .message = fmt::format("the prompt has {} tokens, and this model's context length is {} "
                                 "tokens, prompt and answer together; shorten the conversation or "
                                 "start the server with a larger -c",
                                 n_tokens, options_.max_prompt_tokens),
          .param = "messages"};
}

ApiResult<Prepared> Preparer::prepare(const ApiRequest& request,
                                      const std::atomic<bool>* stop) const {
  Prepared out{.prompts = {}, .how = generation(request)};
  if (const Status status = validate(out.how.sampling, model_.n_vocab()); !status.ok())
    return api_error(status);
  if (request.prompts.empty()) {
    auto rendered = render(request, true, stop);
    if (!rendered.ok()) return api_error(rendered.status());
    out.output.format = format_;
    out.output.in_reasoning = opens_reasoning(format_.reasoning, rendered->text);
    if (uses_tools(request)) out.output.tools = ToolSet(request.chat.tools);
    out.prompts.push_back(std::move(rendered->tokens));
  }
  for (const Prompt& prompt : request.prompts) {
    if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
      out.prompts.push_back(*ids);
      continue;
    }
    auto tokens = model_.tokenizer().encode(std::get<std::string>(prompt), true);
    if (!tokens.ok()) return api_error(tokens.status());
    out.prompts.push_back(std::move(tokens).value());
  }
  for (const auto& prompt : out.prompts) {
    if (ApiError error = check_length(prompt.size()); !error.ok()) return error;
    if (const Status status = model_.check(prompt, out.how); !status.ok()) return api_error(status);
  }
  return out;
}

}  // namespace millrace::serve
