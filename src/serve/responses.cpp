#include "serve/responses.h"

#include <array>

#include "serve/chat_tools.h"
#include "serve/json_read.h"
#include "serve/request_fields.h"
#include "serve/responses_input.h"

namespace millrace::serve::responses {
namespace {

// Fields that change the answer and are not done here.
void refuse(const Field& body) {
  constexpr std::array<std::array<std::string_view, 2>, 3> kRefused = {{
      {"previous_response_id", "nothing is stored here: send the whole input"},
      {"conversation", "nothing is stored here: send the whole input"},
      {"prompt", "nothing is stored here: send instructions and input"},
  }};
  for (const auto& [key, instead] : kRefused)
    if (const Field field = body[key]; field.given()) field.not_supported(instead);
  if (const Field field = body["top_logprobs"]; field.integer(0, 20).value_or(0) > 0)
    field.not_supported("use chat completions");
  for (const Field& field : body["include"].elements())
    if (field.text() == "message.output_text.logprobs") field.not_supported("use chat completions");
}

// What of the request a response repeats, with OpenAI's words for what was not said.
Json shown_of(const Field& body) {
  Json out = {{"instructions", nullptr},
              {"max_output_tokens", nullptr},
              {"metadata", Json::object()},
              {"parallel_tool_calls", true},
              {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
              {"temperature", nullptr},
              {"text", {{"format", {{"type", "text"}}}}},
              {"tool_choice", "auto"},
              {"tools", Json::array()},
              {"top_p", nullptr},
              {"truncation", "disabled"},
              {"user", nullptr}};
  for (auto& [key, value] : out.items())
    if (const Field field = body[key]; field.given()) value = field.json();
  return out;
}

void read_tools_and_choice(const Field& body, Input& input, ApiRequest& out) {
  Json tools = read_tools(body["tools"], input.special);
  for (Json& tool : input.tools) tools.push_back(std::move(tool));
  out.chat.tools = std::move(tools);
  const Field choice = body["tool_choice"];
  out.tool_choice = read_tool_choice(choice, choice.is_object() ? choice["name"] : choice);
  check_tool_choice(choice, out.tool_choice, out.chat.tools);
  out.parallel_calls = body["parallel_tool_calls"].flag(true);
}

void read_input_and_tools(const Field& body, ApiRequest& out) {
  Input input;
  if (const Field field = body["instructions"]; field.given())
    input.messages.push_back(Json::object({{"role", "system"}, {"content", field.text()}}));
  read_input(body["input"], input);
  if (body.ok() && input.messages.empty()) body["input"].fail("is empty");
  read_tools_and_choice(body, input, out);
  out.chat.messages = std::move(input.messages);
  out.dialect[kTools] = std::move(input.special);
}

}  // namespace

ApiResult<ApiRequest> parse(const Json& json, const HeaderOf& header) {
  Reading reading;
  const Field body(json, reading);
  ApiRequest out;
  refuse(body);
  read_common(body, header, out);
  read_input_and_tools(body, out);
  out.max_tokens = read_max_tokens(body["max_output_tokens"]);
  out.stops = read_stops(body["stop"]);
  const Field format = body["text"]["format"];
  out.format = read_format(format, format);
  const Field reasoning = body["reasoning"];
  read_effort(reasoning["effort"], out.reasoning);
  out.background = body["background"].flag();
  if (out.background && !body["store"].flag(true))
    body["store"].fail("must not be false: a response in the background is stored");
  const std::string summary = reasoning["summary"].text("none");
  if (body["metadata"].given() && !body["metadata"].is_object())
    body["metadata"].fail_type("an object");
  out.dialect[kSummary] = summary != "none";
  out.dialect[kShown] = shown_of(body);
  return finish(std::move(out), std::move(reading));
}

}  // namespace millrace::serve::responses
