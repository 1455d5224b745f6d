// What the dialects' tests share: requests from text, and one answer to write.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/json_text.h"
#include "serve/dialect.h"
#include "serve/json_body.h"

namespace millrace::serve {

using Headers = std::map<std::string, std::string, std::less<>>;
using Parse = ApiResult<ApiRequest> (*)(const Json&, const HeaderOf&);

inline HeaderOf header_of(const Headers& headers) {
  return [&headers](std::string_view name) -> std::string_view {
    const auto at = headers.find(name);
    return at == headers.end() ? std::string_view() : at->second;
  };
}

inline ApiResult<ApiRequest> read(Parse parse, std::string_view body, const Headers& headers = {}) {
  auto json = parse_body(body);
  if (auto* error = std::get_if<ApiError>(&json)) return *error;
  return parse(std::get<Json>(json), header_of(headers));
}

inline ApiRequest good(Parse parse, std::string_view body, const Headers& headers = {}) {
  auto out = read(parse, body, headers);
  if (auto* error = std::get_if<ApiError>(&out)) {
    ADD_FAILURE() << error->message << "\nfrom " << body;
    return {};
  }
  return std::get<ApiRequest>(std::move(out));
}

// The path of the field that is wrong, and the message after it.
inline std::string problem(Parse parse, std::string_view body) {
  const auto out = read(parse, body);
  if (const auto* error = std::get_if<ApiError>(&out)) {
    EXPECT_EQ(http_status(error->kind), 400);
    return error->param + ": " + error->message;
  }
  return "accepted";
}

inline std::string dumped(const Json& json) {
  return json_text(json);
}

// With thinking, text and two calls; then its `finished` and `done`.
inline std::vector<AnswerEvent> busy_answer() {
  using enum AnswerEvent::Kind;
  const Usage usage = {.n_prompt = 20, .n_cached = 16, .n_completion = 9, .n_reasoning = 3};
  return {
      {.kind = accepted, .seed = 7, .usage = {.n_prompt = 20, .n_cached = 16}},
      {.kind = reasoning, .text = "hm"},
      {.kind = reasoning, .text = "m"},
      {.kind = text, .text = "I "},
      {.kind = text, .text = "look"},
      {.kind = call_begin, .call = 0, .text = "read", .call_id = "call_a"},
      {.kind = call_arguments, .call = 0, .text = "{\"path\":"},
      {.kind = call_arguments, .call = 0, .text = "\"x\"}"},
      {.kind = call_end, .call = 0},
      {.kind = call_begin, .call = 1, .text = "ls", .call_id = "call_b"},
      {.kind = call_arguments, .call = 1, .text = "{}"},
      {.kind = call_end, .call = 1},
      {.kind = finished, .finish = FinishReason::tool_calls, .usage = usage},
      {.kind = done, .usage = usage},
  };
}

inline std::vector<AnswerEvent> short_answer(std::string words = "Hi",
                                             FinishReason finish = FinishReason::end) {
  using enum AnswerEvent::Kind;
  const Usage usage = {.n_prompt = 5, .n_completion = 2};
  return {{.kind = accepted, .seed = 7, .usage = {.n_prompt = 5}},
          {.kind = text, .text = std::move(words)},
          {.kind = finished, .finish = finish, .usage = usage},
          {.kind = done, .usage = usage}};
}

inline AnswerHead test_head() {
  return {.id = "1", .model = "tiny", .created_s = 1700000000, .fingerprint = "fp"};
}

inline Answer collected(const std::vector<AnswerEvent>& events) {
  Answer out;
  for (const AnswerEvent& event : events) out.add(event);
  return out;
}

inline std::string streamed(StreamWriter& writer, const std::vector<AnswerEvent>& events) {
  std::string out;
  for (const AnswerEvent& event : events) out += writer.write(event);
  return out;
}

// The wire's events, without what is the same in each or hangs on a clock: a name and JSON a line.
inline std::string lines_of(const std::string& wire, std::initializer_list<const char*> without) {
  std::string out;
  for (size_t at = 0; at < wire.size();) {
    const size_t end = wire.find('\n', at);
    std::string line = wire.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("event: ")) out += line.substr(7) + " ";
    if (!line.starts_with("data: ")) continue;
    line = line.substr(6);
    if (line != "[DONE]") {
      Json json = Json::parse(line);
      for (const char* key : without) json.erase(key);
      line = dumped(json);
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace millrace::serve
