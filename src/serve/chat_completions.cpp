#include "serve/chat_completions.h"

#include <fmt/format.h>

#include <array>

#include "base/json_text.h"
#include "serve/chat_tools.h"
#include "serve/content_text.h"
#include "serve/json_read.h"
#include "serve/request_fields.h"

namespace millrace::serve::chat_completions {
namespace {

constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};

// Text as it is, whatever it holds: what a model once wrote must not lock its session out.
std::string arguments_of(const Field& field) {
  if (!field.given()) return "{}";
  return field.is_string() ? field.text() : json_text(field.json());
}

Json read_call(const Field& call) {
  const Field custom = call["custom"];
  if (custom.is_object()) {
    const Json arguments = {{"input", custom["input"].text()}};
    return tool_call(call["id"].text(), custom["name"].text(), json_text(arguments));
  }
  const Field function = call["function"].required();
  return tool_call(call["id"].text(), function["name"].required().text(),
                   arguments_of(function["arguments"]));
}

void read_assistant(const Field& message, Json& out) {
  Json calls;
  for (const Field& call : message["tool_calls"].elements()) calls.push_back(read_call(call));
  if (const Field old = message["function_call"]; old.is_object())
    calls.push_back(tool_call("", old["name"].text(), arguments_of(old["arguments"])));
  // Templates tell a call without words by its content being none.
  const bool wordless = !message["content"].given() && !calls.empty();
  out["content"] = wordless ? Json() : Json(content_text(message["content"]));
  for (const char* key : {"reasoning_content", "reasoning", "thinking"}) {
    const Field reasoning = message[key];
    if (!reasoning.is_string() || reasoning.json() == "") continue;
    out["reasoning_content"] = reasoning.text();
    break;
  }
  if (!calls.empty()) out["tool_calls"] = std::move(calls);
}

Json read_message(const Field& message) {
  std::string role = message["role"].required().choice(kRoles);
  // No model here was trained on the names that OpenAI gave to the same roles later or earlier.
  if (role == "developer") role = "system";
  if (role == "function") role = "tool";
  Json out = {{"role", role}};
  if (role == "assistant")
    read_assistant(message, out);
  else
    out["content"] = content_text(message["content"]);
  if (const Field name = message["name"]; name.given()) out["name"] = name.text();
  if (role == "tool")
    if (const Field id = message["tool_call_id"]; id.given()) out["tool_call_id"] = id.text();
  return out;
}

void read_messages(const Field& messages, ApiRequest& out) {
  for (const Field& message : messages.required().elements())
    out.chat.messages.push_back(read_message(message));
  if (messages.ok() && out.chat.messages.empty()) messages.fail("is empty");
}

// vLLM's way to say that the last message is the beginning of the answer.
void take_prefill(const Field& body, ApiRequest& out) {
  if (!body["continue_final_message"].flag() || out.chat.messages.empty()) return;
  Json& last = out.chat.messages.back();
  if (last["role"] != "assistant" || !last["content"].is_string() || last.contains("tool_calls"))
    return body["continue_final_message"].fail("needs a last message of the assistant with text");
  out.prefill = last["content"].get<std::string>();
  out.chat.messages.erase(out.chat.messages.size() - 1);
}

void read_logprobs(const Field& body, AskedSampling& out) {
  out.logprob = body["logprobs"].flag();
  const Field top = body["top_logprobs"];
  out.n_logprobs = static_cast<int>(top.integer(0, 20).value_or(0));
  if (out.n_logprobs > 0 && !out.logprob) top.fail("needs logprobs to be true");
}

// Fields that change the answer and are not done here.
void refuse(const Field& body) {
  constexpr std::array<std::array<std::string_view, 2>, 7> kRefused = {{
      {"audio", ""},
      {"functions", "use tools"},
      {"function_call", "use tool_choice"},
      {"web_search_options", ""},
      {"grammar", "use response_format"},
      {"guided_json", "use response_format"},
      {"structured_outputs", "use response_format"},
  }};
  for (const auto& [key, instead] : kRefused)
    if (const Field field = body[key]; field.given()) field.not_supported(instead);
  for (const Field& modality : body["modalities"].elements())
    if (modality.text() != "text") modality.not_supported();
}

}  // namespace

ApiResult<ApiRequest> parse(const Json& json, const HeaderOf& header) {
  Reading reading;
  const Field body(json, reading);
  ApiRequest out;
  refuse(body);
  read_common(body, header, out);
  read_messages(body["messages"], out);
  take_prefill(body, out);
  const Field choice = body["tool_choice"];
  out.chat.tools = read_tools(body["tools"]);
  out.tool_choice =
      read_tool_choice(choice, choice.is_object() ? choice["function"]["name"] : choice);
  check_tool_choice(choice, out.tool_choice, out.chat.tools);
  out.parallel_calls = body["parallel_tool_calls"].flag(true);
  out.n = static_cast<int>(body["n"].integer(1, kMaxChoices).value_or(1));
  const Field newer = body["max_completion_tokens"];
  out.max_tokens = read_max_tokens(newer.given() ? newer : body["max_tokens"]);
  out.stops = read_stops(body["stop"]);
  read_biases(body["logit_bias"], out.sampling);
  read_logprobs(body, out.sampling);
  const Field format = body["response_format"];
  out.format = read_format(format, format.is_object() ? format["json_schema"] : format);
  read_effort(body["reasoning_effort"], out.reasoning);
  if (const Field reasoning = body["reasoning"]; reasoning.is_object())  // OpenRouter's
    read_effort(reasoning["effort"], out.reasoning);
  out.include_usage = body["stream_options"]["include_usage"].flag();
  return finish(std::move(out), std::move(reading));
}

}  // namespace millrace::serve::chat_completions
