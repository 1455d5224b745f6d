#include "serve/responses_input.h"

#include <fmt/format.h>

#include <array>

#include "base/json_text.h"
#include "base/utf8.h"
#include "serve/chat_tools.h"
#include "serve/content_text.h"

namespace millrace::serve::responses {
namespace {

// Free text as the only argument of a function. A grammar cannot be enforced, but the model can
// read it.
Json custom_tool(const Field& tool) {
  Json out = function_tool(tool, "parameters");
  Json& function = out["function"];
  if (const Field format = tool["format"]; format.is_object() && format["definition"].is_string()) {
    const std::string description = function.value("description", "");
    function["description"] = fmt::format(
        "{}{}The input follows this {} grammar:\n{}", description, description.empty() ? "" : "\n",
        format["syntax"].text("lark"), format["definition"].text());
  }
  Json input = {{"type", "string"}, {"description", "The whole input of the tool, as free text."}};
  Json properties = Json::object();
  properties["input"] = std::move(input);
  function["parameters"] = {{"type", "object"},
                            {"properties", std::move(properties)},
                            {"required", Json::array({"input"})},
                            {"additionalProperties", false}};
  return out;
}

void read_tool(const Field& tool, const std::string& space, Json& out, Json& special) {
  const std::string type = tool["type"].text("function");
  if (type == "namespace") {
    const std::string name = tool["name"].required().text();
    for (const Field& inner : tool["tools"].elements()) read_tool(inner, name, out, special);
    return;
  }
  if (out.size() >= kMaxTools)
    return tool.fail(fmt::format("is one too many; at most {} tools are taken", kMaxTools));
  const bool custom = type == "custom";
  if (!custom && type != "function")
    return tool.warn(fmt::format("is of type {} and was left out", printable(type, 40)));
  Json made = custom ? custom_tool(tool) : function_tool(tool, "parameters");
  const std::string name = made["function"]["name"].get<std::string>();
  const std::string known_as = full_name(space, name);
  if (custom || !space.empty()) {
    Json& note = special[known_as] = {{"type", custom ? "custom" : "function"}, {"name", name}};
    if (!space.empty()) note["namespace"] = space;
  }
  made["function"]["name"] = known_as;
  out.push_back(std::move(made));
}

// The turn of the assistant that `messages` ends with, begun where there is none.
Json& assistant_turn(Json& messages) {
  if (messages.empty() || messages.back()["role"] != "assistant")
    messages.push_back(Json::object({{"role", "assistant"}, {"content", nullptr}}));
  return messages.back();
}

bool is_only_reasoning(const Json& turn) {
  return turn["content"].is_null() && !turn.contains("tool_calls");
}

// The same, but one that has said nothing aloud.
Json& silent_turn(Json& messages) {
  if (!is_only_reasoning(assistant_turn(messages)))
    messages.push_back(Json::object({{"role", "assistant"}, {"content", nullptr}}));
  return messages.back();
}

void read_message(const Field& item, Json& messages) {
  constexpr std::array<std::string_view, 4> kRoles = {"user", "assistant", "system", "developer"};
  std::string role = item["role"].required().choice(kRoles);
  std::string text = content_text(item["content"]);
  if (role == "developer") role = "system";
  if (role == "assistant")
    silent_turn(messages)["content"] = std::move(text);
  else
    messages.push_back(Json::object({{"role", role}, {"content", std::move(text)}}));
}

// The reasoning itself, or the summary, which is the same here.
void read_reasoning(const Field& item, Json& messages) {
  std::string text;
  for (const char* key : {"content", "summary"})
    if (text.empty() && item[key].given()) text = content_text(item[key]);
  if (text.empty()) return;
  Json& turn = silent_turn(messages);
  Json& all = turn["reasoning_content"];
  if (!all.is_string()) all = "";
  append_part(all.get_ref<std::string&>(), text);
}

void add_call(Json& messages, const Field& item, std::string name, std::string arguments) {
  Json& turn = assistant_turn(messages);
  std::string id = item[item["call_id"].given() ? "call_id" : "id"].text();
  turn["tool_calls"].push_back(tool_call(std::move(id), std::move(name), std::move(arguments)));
}

void read_call(const Field& item, Json& messages) {
  const Field arguments = item["arguments"];
  add_call(messages, item, full_name(item["namespace"].text(), item["name"].required().text()),
           arguments.is_string() ? arguments.text() : json_text(arguments.json()));
}

void read_custom_call(const Field& item, Json& messages) {
  const Json arguments = {{"input", item["input"].text()}};
  add_call(messages, item, full_name(item["namespace"].text(), item["name"].required().text()),
           json_text(arguments));
}

void read_output(const Field& item, Json& messages) {
  const Field output = item["output"];
  const bool other = output.given() && !output.is_string() && !output.is_array();
  std::string text = other ? json_text(output.json()) : content_text(output);
  std::string id = item[item["call_id"].given() ? "call_id" : "id"].text();
  messages.push_back(Json::object(
      {{"role", "tool"}, {"content", std::move(text)}, {"tool_call_id", std::move(id)}}));
}

void read_item(const Field& item, Input& out) {
  const std::string type = item["type"].text("message");
  if (type == "message")
    read_message(item, out.messages);
  else if (type == "reasoning")
    read_reasoning(item, out.messages);
  else if (type == "function_call")
    read_call(item, out.messages);
  else if (type == "custom_tool_call")
    read_custom_call(item, out.messages);
  else if (type == "local_shell_call")
    add_call(out.messages, item, "local_shell", json_text(item["action"].json()));
  else if (type.ends_with("_call_output"))
    read_output(item, out.messages);
  else if (type == "additional_tools")
    for (const Field& tool : item["tools"].elements()) read_tool(tool, "", out.tools, out.special);
  else if (type == "item_reference")
    item.not_supported("nothing is stored here: send the item itself");
  else
    item.warn(fmt::format("is of type {} and was left out", printable(type, 40)));
}

}  // namespace

std::string full_name(const std::string& space, const std::string& name) {
  if (space.empty()) return name;
  return space.ends_with("__") ? space + name : space + "__" + name;
}

Json read_tools(const Field& tools, Json& special) {
  check_tool_count(tools);
  Json out;
  for (const Field& tool : tools.elements()) read_tool(tool, "", out, special);
  return out;
}

void read_input(const Field& input, Input& out) {
  if (input.is_string()) {
    out.messages.push_back(Json::object({{"role", "user"}, {"content", input.text()}}));
    return;
  }
  for (const Field& item : input.required().elements()) read_item(item, out);
  for (Json& message : out.messages)  // a turn that ended in its reasoning
    if (message["role"] == "assistant" && is_only_reasoning(message)) message["content"] = "";
}

}  // namespace millrace::serve::responses
