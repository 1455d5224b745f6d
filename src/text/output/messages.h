// Tools for templates that do not show them: what the model has to know is put into the messages as
// text, so that any model can be asked to call tools.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "text/output/format.h"
#include "text/template/chat_template.h"

namespace millrace {

// The tools and how to call them, for a system message.
std::string tool_instructions(ToolFormat format, const nlohmann::ordered_json& tools);
std::string hermes_instructions(const nlohmann::ordered_json& tools);

// Calls of a message in OpenAI's shape, as the model would have written them. Arguments that are a
// string are taken as they are, whatever they hold.
std::string written_calls(ToolFormat format, const nlohmann::ordered_json& tool_calls);

// The format of a template, whose source this is: as find_output_format() reads it, and then tried
// out: whether tools, calls and the system role are shown is what rendering them says.
OutputFormat output_format_of(const ChatTemplate& chat_template, std::string_view source,
                              const std::function<bool(std::string_view)>& has_token = {});

// The conversation as the template needs it; as it was, if the template does it all.
// - needs_instructions: they end the system message. Without a system role, which some templates
//   refuse, they begin the first message of the user.
// - needs_written_calls: calls become content. Where the template shows no tools either, results
//   become messages of the user; those that follow each other are joined, with what the user says
//   next, because many templates want the roles to alternate.
ChatInput with_tools_as_text(ChatInput input, const OutputFormat& format);

}  // namespace millrace
