// The items and tools of a Responses request as messages and functions.
#pragma once

#include "serve/json_read.h"

namespace millrace::serve::responses {

// Functions in chat completions' shape; what they were is noted in `special` by the name that the
// model sees.
Json read_tools(const Field& tools, Json& special);

// A string, or a list of items. Tools that come among the items are added to `tools`.
struct Input {
  Json messages = Json::array();
  Json tools = {};
  Json special = Json::object();
};
void read_input(const Field& input, Input& out);

// The name by which the model knows a tool of a namespace.
std::string full_name(const std::string& space, const std::string& name);

}  // namespace millrace::serve::responses
