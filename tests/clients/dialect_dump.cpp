// The dialects without a model, for ./test clients: one JSON object a line in ({path, body,
// events}), one a line out: {error} for a body that is refused, else {request, whole, stream}.
#include <iostream>
#include <string>

#include "base/json_text.h"
#include "serve/dialect.h"
#include "serve/json_body.h"
#include "serve/openapi.h"

namespace {

using namespace millrace::serve;

AnswerEvent::Kind kind_of(const std::string& name) {
  using enum AnswerEvent::Kind;
  if (name == "accepted") return accepted;
  if (name == "progress") return progress;
  if (name == "reasoning") return reasoning;
  if (name == "call_begin") return call_begin;
  if (name == "call_arguments") return call_arguments;
  if (name == "call_end") return call_end;
  if (name == "tokens") return tokens;
  if (name == "finished") return finished;
  if (name == "done") return done;
  if (name == "failed") return failed;
  return text;
}

FinishReason finish_of(const std::string& name) {
  if (name == "length") return FinishReason::length;
  if (name == "tool_calls") return FinishReason::tool_calls;
  return name == "stop_string" ? FinishReason::stop_string : FinishReason::end;
}

AnswerEvent event_of(const Json& json) {
  AnswerEvent out = {
      .kind = kind_of(json.value("kind", "text")),
      .choice = json.value("choice", 0),
      .call = json.value("call", 0),
      .text = json.value("text", ""),
      .call_id = json.value("call_id", ""),
      .finish = finish_of(json.value("finish", "")),
      .stop_string = json.value("stop_string", ""),
      .seed = 7,
      .usage = {.n_prompt = 20, .n_cached = 16, .n_completion = 9, .n_reasoning = 3}};
  for (const Json& token : json.value("tokens", Json::array()))
    out.tokens.push_back({.text = token.get<std::string>(), .logprob = -0.5f});
  if (out.kind == AnswerEvent::Kind::failed)
    out.error = {.kind = ApiError::Kind::internal, .message = "the device was lost"};
  return out;
}

Json answer(const Dialect& dialect, const ApiRequest& request, const Json& events) {
  const AnswerHead head = {.id = "1", .model = "tiny", .created_s = 1700000000, .fingerprint = "f"};
  const auto writer = dialect.stream(request, head);
  Answer whole;
  std::string wire;
  for (const Json& json : events) {
    const AnswerEvent event = event_of(json);
    whole.add(event);
    wire += writer->write(event);
  }
  const Json read = {{"messages", request.chat.messages}, {"warnings", request.warnings}};
  return {{"request", read}, {"whole", dialect.whole(request, head, whole)}, {"stream", wire}};
}

Json run(const Json& job) {
  if (job["path"] == "/openapi.json") return Json::parse(openapi_document("1.0"));
  for (const Dialect& dialect : dialects()) {
    if (dialect.path != job["path"].get<std::string>()) continue;
    const auto request = dialect.parse(job["body"], [](std::string_view) { return ""; });
    if (const auto* error = std::get_if<ApiError>(&request))
      return {{"error", dialect.error(*error)}, {"status", http_status(error->kind)}};
    return answer(dialect, std::get<ApiRequest>(request), job["events"]);
  }
  return {{"error", "no such path"}, {"status", 404}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);)
    std::cout << millrace::json_text(run(Json::parse(line))) << std::endl;
}
