#include "serve/messages.h"

#include <fmt/format.h>

#include <array>

#include "base/json_text.h"
#include "base/utf8.h"
#include "serve/chat_tools.h"
#include "serve/content_text.h"
#include "serve/json_read.h"
#include "serve/request_fields.h"

namespace millrace::serve::messages {
namespace {

// Claude Code puts a line with a number of its own into the first system block of each request:
// left there, no prompt would begin like the one before it.
std::string without_billing(std::string text) {
  if (!text.starts_with("x-anthropic-billing-header:")) return text;
  const size_t rest = text.find_first_not_of("\r\n", std::min(text.find('\n'), text.size()));
  return rest == std::string::npos ? std::string() : text.substr(rest);
}

std::string system_text(const Field& system) {
  if (!system.is_array()) return without_billing(content_text(system));
  std::string out;
  for (const Field& block : system.elements())
    if (const std::string text = without_billing(part_text(block)); !text.empty())
      append_part(out, text);
  return out;
}

Json read_result(const Field& block) {
  std::string text = content_text(block["content"]);
  if (text.empty() && block["is_error"].flag()) text = "error";
  return {{"role", "tool"},
          {"content", std::move(text)},
          {"tool_call_id", block["tool_use_id"].required().text()}};
}

// Results first, each a message, then the rest as one.
void read_blocks(const Field& blocks, Json& out) {
  std::string text;
  bool words = blocks.json().empty();
  for (const Field& block : blocks.elements()) {
    if (block.is_object() && block["type"].json() == "tool_result") {
      out.push_back(read_result(block));
    } else {
      append_part(text, part_text(block));
      words = true;
    }
  }
  if (words) out.push_back(Json::object({{"role", "user"}, {"content", std::move(text)}}));
}

void read_user(const Field& content, Json& out) {
  if (content.is_array()) return read_blocks(content, out);
  out.push_back(Json::object({{"role", "user"}, {"content", content_text(content)}}));
}

struct Said {
  std::string text = {}, reasoning = {};
  Json calls = {};
};

void read_said(const Field& block, Said& said) {
  const std::string type = block["type"].required().text();
  if (type == "text") {
    append_part(said.text, block["text"].required().text());
  } else if (type == "thinking") {
    append_part(said.reasoning, block["thinking"].text());
  } else if (type == "tool_use") {
    const Field input = block["input"];
    said.calls.push_back(tool_call(block["id"].text(), block["name"].required().text(),
                                   input.given() ? json_text(input.json()) : "{}"));
  } else if (type != "redacted_thinking") {
    block.warn(fmt::format("is of type {} and was left out", printable(type, 40)));
  }
}

void read_assistant(const Field& content, Json& out) {
  Said said;
  if (content.is_array())
    for (const Field& block : content.elements()) read_said(block, said);
  else
    said.text = content_text(content);
  Json message = {{"role", "assistant"}};
  message["content"] = said.text.empty() && !said.calls.empty() ? Json() : Json(said.text);
  if (!said.reasoning.empty()) message["reasoning_content"] = std::move(said.reasoning);
  if (!said.calls.empty()) message["tool_calls"] = std::move(said.calls);
  out.push_back(std::move(message));
}

void read_messages(const Field& body, Json& out) {
  constexpr std::array<std::string_view, 3> kRoles = {"user", "assistant", "system"};
  if (std::string system = system_text(body["system"]); !system.empty())
    out.push_back(Json::object({{"role", "system"}, {"content", std::move(system)}}));
  const Field messages = body["messages"].required();
  for (const Field& message : messages.elements()) {
    const std::string role = message["role"].required().choice(kRoles);
    const Field content = message["content"].required();
    if (role == "assistant")
      read_assistant(content, out);
    else if (role == "user")
      read_user(content, out);
    else  // in mid-conversation; it stays there, or the prompt would change from its start
      out.push_back(Json::object({{"role", "system"}, {"content", system_text(content)}}));
  }
  if (messages.ok() && messages.json().empty()) messages.fail("is empty");
}

// A last message of the assistant is the beginning of the answer.
void take_prefill(ApiRequest& out) {
  if (out.chat.messages.empty()) return;
  const Json& last = out.chat.messages.back();
  if (last["role"] != "assistant" || last.contains("tool_calls")) return;
  out.prefill = last["content"].get<std::string>();
  out.chat.messages.erase(out.chat.messages.size() - 1);
}

// Tools of the client's own; those that Anthropic's servers run are not here.
Json client_tools(const Field& tools) {
  check_tool_count(tools);
  Json out;
  for (const Field& tool : tools.elements()) {
    const std::string type = tool["type"].text("custom");
    if (type == "custom")
      out.push_back(function_tool(tool, "input_schema"));
    else
      tool.warn(fmt::format("is of type {} and was left out", printable(type, 40)));
  }
  return out;
}

void read_tool_choice(const Field& choice, ApiRequest& out) {
  using Kind = ToolChoice::Kind;
  constexpr std::array<std::string_view, 4> kTypes = {"auto", "any", "tool", "none"};
  if (!choice.given()) return;
  const std::string type = choice["type"].required().choice(kTypes);
  if (type == "any") out.tool_choice.kind = Kind::required;
  if (type == "none") out.tool_choice.kind = Kind::none;
  if (type == "tool")
    out.tool_choice = {.kind = Kind::named, .name = choice["name"].required().text()};
  out.parallel_calls = !choice["disable_parallel_tool_use"].flag();
  check_tool_choice(choice, out.tool_choice, out.chat.tools);
}

void read_output(const Field& body, ApiRequest& out) {
  const Field config = body["output_config"];
  read_effort(config["effort"], out.reasoning);
  const Field newer = config["format"], format = newer.given() ? newer : body["output_format"];
  out.format = read_format(format, format);
  out.format.strict = out.format.kind == ResponseFormat::Kind::json_schema;  // as Anthropic has it
}

ApiResult<ApiRequest> parse_with(const Json& json, const HeaderOf& header, bool counts_only) {
  Reading reading;
  const Field body(json, reading);
  ApiRequest out;
  if (const Field servers = body["mcp_servers"]; servers.given() && !servers.json().empty())
    servers.not_supported("send their tools in tools");
  read_common(body, header, out);
  const Field limit = body["max_tokens"];
  out.max_tokens = read_max_tokens(counts_only ? limit : limit.required());
  read_messages(body, out.chat.messages);
  if (reading.ok()) take_prefill(out);
  out.chat.tools = client_tools(body["tools"]);
  read_tool_choice(body["tool_choice"], out);
  out.stops = read_stops(body["stop_sequences"]);
  read_output(body, out);
  return finish(std::move(out), std::move(reading));
}

}  // namespace

ApiResult<ApiRequest> parse(const Json& body, const HeaderOf& header) {
  return parse_with(body, header, false);
}

ApiResult<ApiRequest> parse_count_tokens(const Json& body, const HeaderOf& header) {
  return parse_with(body, header, true);
}

}  // namespace millrace::serve::messages
