#include "serve/chat_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace millrace::serve {
namespace {

Json empty_schema() {
  return {{"type", "object"}, {"properties", Json::object()}};
}

std::string function_name(const Field& field) {
  std::string name = field.required().text();
  if (name.empty()) field.fail("is empty");
  return name;
}

// As the client wrote it, because the template prints it.
Json chat_function(const Field& function) {
  function_name(function["name"]);
  function["description"].text();
  if (const Field schema = function["parameters"]; schema.given() && !schema.is_object())
    schema.fail_type("an object");
  if (!function.is_object()) return {};
  Json out = function.json();
  if (!function["parameters"].given()) out["parameters"] = empty_schema();
  return out;
}

}  // namespace

void check_tool_count(const Field& tools) {
  if (tools.is_array() && tools.json().size() > kMaxTools)
    tools.fail(fmt::format("has {} tools; at most {} are taken", tools.json().size(), kMaxTools));
}

Json read_tools(const Field& tools) {
  check_tool_count(tools);
  Json out;
  for (const Field& tool : tools.elements()) {
    const std::string type = tool["type"].text("function");
    if (type == "function") {
      Json function = chat_function(tool["function"].required());
      out.push_back(Json::object({{"type", "function"}, {"function", std::move(function)}}));
    } else {
      tool.warn(fmt::format("is of type {} and was left out", printable(type, 40)));
    }
  }
  return out;
}

Json function_tool(const Field& tool, std::string_view schema_key) {
  Json function = {{"name", function_name(tool["name"])}};
  if (const Field text = tool["description"]; text.given()) function["description"] = text.text();
  function["parameters"] = empty_schema();
  if (const Field schema = tool[schema_key]; schema.is_object())
    function["parameters"] = schema.json();
  else if (schema.given())
    schema.fail_type("an object");
  if (tool["strict"].flag()) function["strict"] = true;
  return {{"type", "function"}, {"function", std::move(function)}};
}

Json tool_call(std::string id, std::string name, std::string arguments) {
  Json function = {{"name", std::move(name)}, {"arguments", std::move(arguments)}};
  return {{"id", std::move(id)}, {"type", "function"}, {"function", std::move(function)}};
}

ToolChoice read_tool_choice(const Field& choice, const Field& name) {
  using Kind = ToolChoice::Kind;
  constexpr std::array<std::string_view, 3> kWords = {"auto", "none", "required"};
  if (choice.is_object()) {
    const Field type = choice["type"];
    if (type.required().text() != "function" && type.text() != "custom") type.not_supported();
    return {.kind = Kind::named, .name = function_name(name)};
  }
  const std::string word = choice.choice(kWords);
  if (word == "none") return {.kind = Kind::none};
  return {.kind = word == "required" ? Kind::required : Kind::automatic};
}

void check_tool_choice(const Field& choice, const ToolChoice& wanted, const Json& tools) {
  using Kind = ToolChoice::Kind;
  if (!choice.ok() || wanted.kind == Kind::automatic || wanted.kind == Kind::none) return;
  if (tools.empty()) return choice.fail("asks for a tool call, and there are no tools to call");
  if (wanted.kind == Kind::required) return;
  const bool there = std::any_of(tools.begin(), tools.end(), [&](const Json& tool) {
    return tool.at("function").value("name", "") == wanted.name;
  });
  if (!there)
    choice.fail(
        fmt::format("names '{}', which is not among the tools", printable(wanted.name, 100)));
}

}  // namespace millrace::serve
