// A way of asking for answers over HTTP: one of OpenAI's or Anthropic's. A row of functions, each
// pure: they know no socket, no engine and no clock.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "serve/answer.h"
#include "serve/api_request.h"

namespace millrace::serve {

// A request's header by its lower-case name; empty where it has none.
using HeaderOf = std::function<std::string_view(std::string_view name)>;

// Makes one answer's bytes for a client that streams.
class StreamWriter {
 public:
  virtual ~StreamWriter() = default;
  // What goes over the wire for this event: whole server-sent events, or nothing.
  virtual std::string write(const AnswerEvent& event) = 0;
};

struct Dialect {
  std::string_view name;  // "chat completions"
  std::string_view path;  // "/v1/chat/completions"
  ApiResult<ApiRequest> (*parse)(const Json& body, const HeaderOf& header);
  std::unique_ptr<StreamWriter> (*stream)(const ApiRequest& request, const AnswerHead& head);
  Json (*whole)(const ApiRequest& request, const AnswerHead& head, const Answer& answer);
  Json (*error)(const ApiError& error);
};

std::span<const Dialect> dialects();

}  // namespace millrace::serve
