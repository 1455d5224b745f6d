#include "serve/prepare.h"

#include <algorithm>

#include "serve/answer_grammar.h"
#include "text/grammar/matcher.h"
#include "text/output/messages.h"

namespace millrace::serve {
namespace {

constexpr size_t kMaxCompiled = 64;

template <class T>
void take(T& out, const std::optional<T>& asked) {
  if (asked) out = *asked;
}

bool uses_tools(const ApiRequest& request) {
  return request.chat.tools.is_array() && !request.chat.tools.empty() &&
         request.tool_choice.kind != ToolChoice::Kind::none;
}

// Of the longest tokens as many as the context has.
size_t most_bytes(const Tokenizer& tokenizer, int64_t n_tokens) {
  size_t longest = 1;
  for (int32_t id = 0; id < tokenizer.size(); ++id)
    longest = std::max(longest, tokenizer.piece(id).size());
  return std::min(longest * static_cast<size_t>(n_tokens), Tokenizer::kMaxTextBytes);
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

ApiError render_error(const Status& status) {
  ApiError out = api_error(status);
  out.kind = status.code() == Code::out_of_memory ? ApiError::Kind::context_length
                                                  : ApiError::Kind::invalid_request;
  out.param = "messages";
  return out;
}

Preparer::Preparer(const LanguageModel& model, PrepareOptions options)
    : model_(model),
      options_(std::move(options)),
      max_text_bytes_(most_bytes(model.tokenizer(), options_.max_prompt_tokens)),
      vocabulary_(model.tokenizer()) {
  const Tokenizer& tokenizer = model_.tokenizer();
  format_ =
      output_format_of(model_.chat_template(), model_.template_source(),
                       [&](std::string_view text) { return tokenizer.special_id(text) >= 0; });
}

// Templates know thinking by these names; those that do not look at them do as they always do.
ChatInput Preparer::chat_input(const ApiRequest& request) const {
  ChatInput input = request.chat;
  if (!input.now) input.now = options_.date;
  if (!uses_tools(request)) input.tools = nullptr;
  if (request.reasoning.enabled) variable(input, "enable_thinking") = *request.reasoning.enabled;
  if (!request.reasoning.effort.empty())
    variable(input, "reasoning_effort") = request.reasoning.effort;
  return with_tools_as_text(std::move(input), format_);
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
  MILLRACE_TRY(check_bytes(out.text.size()));
  MILLRACE_ASSIGN(out.tokens, model_.tokenizer().encode(parts));
  return out;
}

namespace {

Json message_of(const AnswerChoice& answer) {
  Json out = {{"role", "assistant"}, {"content", answer.text}};
  if (!answer.reasoning.empty()) out["reasoning_content"] = answer.reasoning;
  for (const ToolCall& call : answer.calls)
    out["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  return out;
}

}  // namespace

// Rendered with two messages that differ from their first letter on: what both share is certain.
Result<std::vector<int32_t>> Preparer::next_prompt(const ApiRequest& request,
                                                   const AnswerChoice& answer) const {
  ApiRequest next = request;
  next.prefill.clear();
  next.chat.messages.push_back(message_of(answer));
  Json follows = {{"role", "user"}};
  if (!answer.calls.empty())
    follows = {{"role", "tool"},
               {"tool_call_id", answer.calls.front().id},
               {"name", answer.calls.front().name}};
  std::vector<int32_t> shared;
  for (const char* text : {"A", "7"}) {
    follows["content"] = text;
    next.chat.messages.push_back(follows);
    MILLRACE_ASSIGN(const Rendered rendered, render(next, false, nullptr));
    next.chat.messages.erase(next.chat.messages.size() - 1);
    if (shared.empty()) {
      shared = rendered.tokens;
      continue;
    }
    const auto differ =
        std::mismatch(shared.begin(), shared.end(), rendered.tokens.begin(), rendered.tokens.end());
    shared.erase(differ.first, shared.end());
  }
  return shared;
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

Status Preparer::check_bytes(size_t n_bytes) const {
  if (n_bytes <= max_text_bytes_) return {};
  return error(Code::out_of_memory,
               "the prompt has {} bytes, and this model's context length is {} tokens, which hold "
               "at most {}; shorten the conversation",
               n_bytes, options_.max_prompt_tokens, max_text_bytes_);
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

Result<std::shared_ptr<const grammar::TokenGrammar>> Preparer::grammar(
    const ApiRequest& request, bool in_reasoning, std::vector<std::string>& warnings) const {
  if (!has_grammar(request)) return std::shared_ptr<const grammar::TokenGrammar>();
  static constexpr OutputFormat kPlain;
  const AnswerShape shape{request, request.prompts.empty() ? format_ : kPlain, in_reasoning};
  const std::string key = grammar_key(shape);
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = compiled_.find(key); it != compiled_.end()) {
      it->second.used = ++n_uses_;
      warnings.insert(warnings.end(), it->second.warnings.begin(), it->second.warnings.end());
      return it->second.grammar;
    }
  }
  Compiled made;
  MILLRACE_ASSIGN(auto compiled, answer_grammar(shape, made.warnings));
  made.grammar = std::make_shared<const grammar::TokenGrammar>(std::move(*compiled), vocabulary_);
  warnings.insert(warnings.end(), made.warnings.begin(), made.warnings.end());
  const std::lock_guard lock(mutex_);
  made.used = ++n_uses_;
  if (compiled_.size() >= kMaxCompiled)
    compiled_.erase(std::min_element(
        compiled_.begin(), compiled_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  return compiled_.insert_or_assign(key, std::move(made)).first->second.grammar;
}

// A text that is only continued has neither calls nor reasoning.
ApiError Preparer::compile(const ApiRequest& request, Prepared& out) const {
  auto compiled = grammar(request, out.output.in_reasoning, out.warnings);
  if (!compiled.ok()) return api_error(compiled.status());
  out.grammar = std::move(compiled).value();
  if (!out.grammar) return {};
  out.how.ignore_end = false;  // nothing may follow
  grammar::Matcher matcher(*out.grammar);
  if (request.prefill.empty() || matcher.accept_text(request.prefill).ok()) return {};
  return {.kind = ApiError::Kind::invalid_request,
          .message = "what the answer is to begin with does not fit its format",
          .param = "messages"};
}

void Preparer::read_as(const ApiRequest& request, Prepared& out) const {
  if (!request.prompts.empty()) return;
  out.output.format = format_;
  if (uses_tools(request)) out.output.tools = ToolSet(request.chat.tools);
}

ApiError Preparer::complete(const ApiRequest& request, Prepared& out) const {
  read_as(request, out);
  return compile(request, out);
}

ApiResult<Prepared> Preparer::prepare(const ApiRequest& request,
                                      const std::atomic<bool>* stop) const {
  Prepared out{.prompts = {}, .how = generation(request)};
  if (const Status status = validate(out.how.sampling, model_.n_vocab()); !status.ok())
    return api_error(status);
  if (request.prompts.empty()) {
    auto rendered = render(request, true, stop);
    if (!rendered.ok()) return render_error(rendered.status());
    out.output.in_reasoning = opens_reasoning(format_.reasoning, rendered->text);
    out.prompts.push_back(std::move(rendered->tokens));
  }
  for (const Prompt& prompt : request.prompts) {
    if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
      out.prompts.push_back(*ids);
      continue;
    }
    const std::string& text = std::get<std::string>(prompt);
    if (const Status status = check_bytes(text.size()); !status.ok()) return render_error(status);
    auto tokens = model_.tokenizer().encode(text, true);
    if (!tokens.ok()) return api_error(tokens.status());
    out.prompts.push_back(std::move(tokens).value());
  }
  if (ApiError error = complete(request, out); !error.ok()) return error;
  for (const auto& prompt : out.prompts) {
    if (ApiError error = check_length(prompt.size()); !error.ok()) return error;
    if (const Status status = model_.check(prompt, out.how); !status.ok()) return api_error(status);
  }
  return out;
}

}  // namespace millrace::serve
