// Tools, calls and their choice as chat completions and chat templates have them: what the other
// dialects are turned into.
#pragma once

#include <string>

#include "serve/json_read.h"

namespace millrace::serve {

// {"type": "function", "function": {name, description, parameters, strict}} in the order given; of
// other types, a warning. Null where there are none.
Json read_tools(const Field& tools);
// A function made of the fields that `tool` has under these names.
Json function_tool(const Field& tool, std::string_view schema_key);
void check_tool_count(const Field& tools);
inline constexpr size_t kMaxTools = 4096;

// {"id", "type": "function", "function": {"name", "arguments"}}; arguments are text.
Json tool_call(std::string id, std::string name, std::string arguments);

// "auto", "none", "required" or {"type": "function", ...}; `name` is the field that names it.
ToolChoice read_tool_choice(const Field& choice, const Field& name);
// A choice of what is not there is an error at `choice`.
void check_tool_choice(const Field& choice, const ToolChoice& wanted, const Json& tools);

}  // namespace millrace::serve
