// The items that a response consists of, as they stand at a given moment.
#pragma once

#include <string>

#include "serve/answer.h"
#include "serve/api_request.h"

namespace millrace::serve::responses {

// What writers know of a request, read out of ApiRequest::dialect.
struct Shape {
  Json shown = Json::object();
  Json tools = Json::object();
  bool summary = false;

  explicit Shape(const ApiRequest& request);
  // Its entry among the tools that are more than functions; null for a function.
  const Json* special(const std::string& name) const;
  bool is_custom(const std::string& name) const;
};

// in_progress, completed or incomplete
Json reasoning_item(const std::string& id, const std::string& text, bool summary,
                    std::string_view status);
Json message_item(const std::string& id, const std::string& text, std::string_view status);
Json call_item(const std::string& id, const ToolCall& call, const Shape& shape,
               std::string_view status);
Json text_part(const std::string& text);

// The text that a custom tool gets, out of the arguments of the function that stood for it.
std::string custom_input(const std::string& arguments);

// A whole response object, without its output, usage and error.
Json response_of(const AnswerHead& head, const Shape& shape, std::string_view status);
Json usage_of(const Usage& usage);
// {"code", "message"}, with the codes that Codex knows.
Json failure_of(const ApiError& error);

// An id for the item at this place: "msg_ID_0".
std::string item_id(std::string_view prefix, const AnswerHead& head, size_t index);

}  // namespace millrace::serve::responses
