#include "serve/openai_shapes.h"

#include <fmt/format.h>

#include "base/json_text.h"

namespace millrace::serve {
namespace {

std::string_view type_of(ApiError::Kind kind) {
  using enum ApiError::Kind;
  switch (kind) {
    case authentication:
      return "authentication_error";
    case permission:
      return "permission_error";
    case rate_limit:
      return "rate_limit_error";
    case internal:
    case overloaded:
      return "server_error";
    default:
      return "invalid_request_error";
  }
}

// Of one token, without those it was chosen from.
Json token_json(const TokenShown& token) {
  Json bytes = Json::array();
  for (const char c : token.text) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", token.text}, {"logprob", token.logprob}, {"bytes", std::move(bytes)}};
}

double per_second(int64_t n, double seconds) {
  return seconds > 0 ? static_cast<double>(n) / seconds : 0;
}

}  // namespace

std::string_view openai_code(ApiError::Kind kind) {
  using enum ApiError::Kind;
  switch (kind) {
    case context_length:
      return "context_length_exceeded";
    case authentication:
      return "invalid_api_key";
    case rate_limit:
      return "rate_limit_exceeded";
    case overloaded:
      return "server_is_overloaded";
    case internal:
      return "server_error";
    case not_found:
      return "not_found";
    case too_large:
      return "request_too_large";
    case conflict:
      return "conflict";
    case unprocessable:
      return "idempotency_key_reused";
    case not_supported:
      return "not_supported";
    default:
      return "";
  }
}

Json openai_error(const ApiError& error) {
  const std::string_view code = openai_code(error.kind);
  Json body = {{"message", error.message}, {"type", type_of(error.kind)}};
  body["param"] = error.param.empty() ? Json() : Json(error.param);
  body["code"] = code.empty() ? Json() : Json(code);
  return {{"error", std::move(body)}};
}

Json openai_usage(const Usage& usage) {
  return {{"prompt_tokens", usage.n_prompt},
          {"completion_tokens", usage.n_completion},
          {"total_tokens", usage.n_prompt + usage.n_completion},
          {"prompt_tokens_details", {{"cached_tokens", usage.n_cached}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.n_reasoning}}}};
}

Json openai_logprobs(const std::vector<TokenShown>& tokens) {
  Json content = Json::array();
  for (const TokenShown& token : tokens) {
    Json one = token_json(token);
    Json& top = one["top_logprobs"] = Json::array();
    for (const TokenShown& other : token.most_likely) top.push_back(token_json(other));
    content.push_back(std::move(one));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

std::string_view openai_finish(FinishReason finish) {
  switch (finish) {
    case FinishReason::length:
      return "length";
    case FinishReason::tool_calls:
      return "tool_calls";
    default:
      return "stop";
  }
}

Json timings(const Usage& usage) {
  const int64_t computed = usage.n_prompt - usage.n_cached;
  return {{"queue_ms", usage.queue_s * 1e3},
          {"cache_n", usage.n_cached},
          {"cache_disk_n", usage.n_from_disk},
          {"prompt_n", computed},
          {"prompt_ms", usage.prompt_s * 1e3},
          {"prompt_per_second", per_second(computed, usage.prompt_s)},
          {"predicted_n", usage.n_completion},
          {"predicted_ms", usage.completion_s * 1e3},
          {"predicted_per_second", per_second(usage.n_completion, usage.completion_s)}};
}

std::string sse(const Json& data, std::string_view event) {
  std::string out;
  if (!event.empty()) out = fmt::format("event: {}\n", event);
  out += "data: ";
  out += json_text(data);
  out += "\n\n";
  return out;
}

}  // namespace millrace::serve
