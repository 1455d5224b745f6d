#include "text/output/messages.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "text/template/json.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  return json.is_string() ? json.get<std::string>() : json.is_null() ? "" : json_text(json);
}

std::string role_of(const Json& message) {
  return message.is_object() && message.contains("role") ? text_of(message["role"]) : "";
}

// Of a message, whose content may be parts.
std::string content_of(const Json& message) {
  if (!message.contains("content")) return "";
  const Json& content = message["content"];
  if (!content.is_array()) return text_of(content);
  std::string text;
  for (const Json& part : content) {
    const bool has_text = part.is_object() && part.contains("text");
    text += (text.empty() ? "" : "\n") + text_of(has_text ? part["text"] : part);
  }
  return text;
}

void add_text(Json& message, const std::string& text, bool at_front) {
  if (!message.contains("content")) message["content"] = nullptr;
  Json& content = message["content"];
  if (content.is_array()) {
    const Json part = {{"type", "text"}, {"text", text}};
    content.insert(at_front ? content.begin() : content.end(), part);
  } else if (const std::string old = text_of(content); old.empty()) {
    content = text;
  } else {
    content = at_front ? text + "\n\n" + old : old + "\n\n" + text;
  }
}

void add_instructions(Json& messages, const std::string& text, bool has_system_role) {
  for (Json& message : messages) {
    const std::string role = role_of(message);
    const bool is_system = role == "system" || role == "developer";
    if (has_system_role ? is_system : role == "user")
      return add_text(message, text, !has_system_role);
  }
  const Json first = {{"role", has_system_role ? "system" : "user"}, {"content", text}};
  messages.insert(messages.begin(), first);
}

std::string written_arguments(const CallSyntax& syntax, const Json& arguments) {
  if (syntax.has_json_arguments()) {
    const std::string text = text_of(arguments);
    return text.empty() ? "{}" : text;
  }
  if (text_of(arguments).empty()) return "";
  auto parsed = jinja::parse_ordered_json(text_of(arguments));
  const Json object =
      parsed && parsed->is_object() ? std::move(*parsed) : Json{{"arguments", arguments}};
  std::string out;
  for (const auto& [key, value] : object.items())
    out += fmt::format("{}{}{}{}{}", syntax.before_key, key, syntax.after_key,
                       value.is_null() ? "null" : text_of(value), syntax.after_value);
  return out;
}

std::string written_call(const CallSyntax& syntax, const std::string& name,
                         const std::string& arguments) {
  return fmt::format("{}{}{}{}{}{}{}", syntax.opener, syntax.before_name, name, syntax.after_name,
                     arguments, syntax.after_arguments, syntax.closer);
}

void write_calls(Json& message, ToolFormat format) {
  const Json calls = std::move(message["tool_calls"]);
  message.erase("tool_calls");
  const std::string text = written_calls(format, calls), content = content_of(message);
  message["content"] = content.empty() ? text : content + "\n" + text;
}

std::string tool_response(const Json& message) {
  return "<tool_response>\n" + content_of(message) + "\n</tool_response>";
}

Json joined(const Json& results, Json question) {
  add_text(question, text_of(results["content"]), true);
  return question;
}

// Results become messages of the user.
Json with_results_as_text(const Json& messages) {
  Json out = Json::array();
  bool after_result = false;
  for (const Json& message : messages) {
    const bool is_result = role_of(message) == "tool" || role_of(message) == "function";
    if (is_result && after_result)
      out.back()["content"] = text_of(out.back()["content"]) + "\n" + tool_response(message);
    else if (is_result)
      out.push_back({{"role", "user"}, {"content", tool_response(message)}});
    else if (after_result && role_of(message) == "user")
      out.back() = joined(out.back(), message);
    else
      out.push_back(message);
    after_result = is_result;
  }
  return out;
}

constexpr std::string_view kProbe = "probe_of_this";

bool shows(const ChatTemplate& chat_template, const ChatInput& input) {
  const auto rendered = chat_template.render(input);
  return rendered.ok() && rendered.value().text().find(kProbe) != std::string::npos;
}

// As strict templates want it: Mistral's look at the length of the id.
Json probe_call() {
  const Json function = {{"name", kProbe}, {"arguments", "{}"}};
  const Json call = {{"id", "callprobe"}, {"type", "function"}, {"function", function}};
  return {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}};
}

}  // namespace

std::string written_calls(ToolFormat format, const Json& tool_calls) {
  const CallSyntax& syntax = call_syntax(format);
  std::string out;
  for (const Json& call : tool_calls) {
    const bool is_wrapped = call.is_object() && call.contains("function");
    const Json& function = is_wrapped ? call["function"] : call;
    if (!function.is_object() || !function.contains("name")) continue;
    const Json arguments = function.contains("arguments") ? function["arguments"] : Json::object();
    if (!out.empty()) out += syntax.separator;
    out += written_call(syntax, text_of(function["name"]), written_arguments(syntax, arguments));
  }
  return fmt::format("{}{}{}", syntax.section_open, out, syntax.section_close);
}

std::string tool_instructions(ToolFormat format, const Json& tools) {
  std::string list;
  for (const Json& tool : tools) list += json_text(tool) + "\n";
  const Json example = {{"name", "FUNCTION"}, {"arguments", {{"PARAMETER", "VALUE"}}}};
  return fmt::format(
      "# Tools\n\n"
      "You can call functions. Each line between the tags describes one of them in JSON:\n"
      "<tools>\n{}</tools>\n\n"
      "To call a function, write its name and its arguments exactly like this:\n{}\n\n"
      "You can write several calls, one after the other. Write nothing after the last one: the "
      "results will be given to you in the next message{}. When you need no function, just answer.",
      list, written_calls(format, Json::array({example})),
      format == ToolFormat::hermes ? ", between <tool_response> and </tool_response>" : "");
}

std::string hermes_instructions(const Json& tools) {
  return tool_instructions(ToolFormat::hermes, tools);
}

ChatInput with_tools_as_text(ChatInput input, const OutputFormat& format) {
  if (!input.messages.is_array()) return input;
  if (format.needs_written_calls) {
    for (Json& message : input.messages) {
      if (!message.is_object() || !message.contains("tool_calls")) continue;
      if (message["tool_calls"].is_array() && !message["tool_calls"].empty())
        write_calls(message, format.tools);
      else
        message.erase("tool_calls");
    }
    if (format.needs_instructions) input.messages = with_results_as_text(input.messages);
  }
  if (format.needs_instructions && input.tools.is_array() && !input.tools.empty()) {
    add_instructions(input.messages, tool_instructions(format.tools, input.tools),
                     format.has_system_role);
    input.tools = nullptr;
  }
  return input;
}

OutputFormat output_format_of(const ChatTemplate& chat_template, std::string_view source,
                              const std::function<bool(std::string_view)>& has_token) {
  OutputFormat format = find_output_format(source, has_token);
  ChatInput input;
  const Json question = {{"role", "user"}, {"content", "Hi"}};
  input.messages = Json::array({Json{{"role", "system"}, {"content", kProbe}}, question});
  format.has_system_role = shows(chat_template, input);
  input.messages.erase(0);
  if (format.tools == ToolFormat::none) return format;
  const Json tool = {{"name", kProbe}, {"description", "none"}, {"parameters", Json::object()}};
  input.tools = Json::array({Json{{"type", "function"}, {"function", tool}}});
  format.needs_instructions = !shows(chat_template, input);
  input.messages.push_back(probe_call());
  input.tools[0]["function"]["name"] = "other";
  format.needs_written_calls = !shows(chat_template, input);
  return format;
}

}  // namespace millrace
