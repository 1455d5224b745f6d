// Any text as the body of a request, in each dialect; what is accepted gets an answer, whole and
// streamed. Whatever comes out must be JSON.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "serve/dialect.h"
#include "serve/json_body.h"
#include "serve/messages.h"

namespace {

using namespace millrace::serve;
using Kind = AnswerEvent::Kind;

std::string_view no_header(std::string_view) {
  return {};
}

// A call of the request's own first tool, where it has one, so that names travel both ways.
std::array<AnswerEvent, 11> answer_to(const ApiRequest& request) {
  std::string name = "f";
  if (!request.chat.tools.empty()) name = request.chat.tools[0]["function"]["name"];
  return {{{.kind = Kind::accepted, .usage = {.n_prompt = 9}},
           {.kind = Kind::progress, .n_done = 4},
           {.kind = Kind::reasoning, .text = "hm"},
           {.kind = Kind::tokens, .tokens = {{.text = "\xc3", .most_likely = {{.text = "\xff"}}}}},
           {.kind = Kind::text, .text = "a\xff\""},
           {.kind = Kind::call_begin, .text = name, .call_id = "c"},
           {.kind = Kind::call_arguments, .text = "{\"input\": \"\\ud8"},
           {.kind = Kind::call_end},
           {.kind = Kind::text, .text = "b"},
           {.kind = Kind::finished, .finish = FinishReason::stop_string, .stop_string = "\xfe"},
           {.kind = Kind::done}}};
}

void check_wire(std::string_view wire) {
  for (size_t at = wire.find("data: "); at != wire.npos; at = wire.find("data: ", at)) {
    at += 6;
    const std::string_view data = wire.substr(at, wire.find('\n', at) - at);
    MILLRACE_CHECK(data == "[DONE]" || Json::accept(data), "no JSON: {}", data);
  }
}

void answer(const Dialect& dialect, const ApiRequest& request) {
  const AnswerHead head = {.id = "1", .model = request.model};
  const auto writer = dialect.stream(request, head);
  Answer whole;
  for (const AnswerEvent& event : answer_to(request)) {
    whole.add(event);
    check_wire(writer->write(event));
  }
  (void)dialect.whole(request, head, whole).dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto failing = dialect.stream(request, head);
  check_wire(failing->write({.kind = Kind::failed, .error = {.message = "\xff"}}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto body = parse_body({reinterpret_cast<const char*>(data), size});
  const Json* const json = std::get_if<Json>(&body);
  if (json == nullptr) return 0;
  for (const Dialect& dialect : dialects()) {
    const auto request = dialect.parse(*json, no_header);
    if (const auto* accepted = std::get_if<ApiRequest>(&request))
      answer(dialect, *accepted);
    else
      (void)dialect.error(std::get<ApiError>(request));
  }
  (void)messages::parse_count_tokens(*json, no_header);
  return 0;
}
