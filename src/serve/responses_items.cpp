#include "serve/responses_items.h"

#include <fmt/format.h>

#include "serve/json_body.h"
#include "serve/openai_shapes.h"
#include "serve/responses.h"

namespace millrace::serve::responses {

Shape::Shape(const ApiRequest& request) {
  if (!request.dialect.is_object()) return;
  shown = request.dialect.value(kShown, Json::object());
  tools = request.dialect.value(kTools, Json::object());
  summary = request.dialect.value(kSummary, false);
}

const Json* Shape::special(const std::string& name) const {
  const auto at = tools.find(name);
  return at == tools.end() ? nullptr : &*at;
}

bool Shape::is_custom(const std::string& name) const {
  const Json* const tool = special(name);
  return tool != nullptr && (*tool)["type"] == "custom";
}

Json reasoning_item(const std::string& id, const std::string& text, bool summary,
                    std::string_view status) {
  Json parts = Json::array();
  if (!text.empty())
    parts.push_back(
        Json::object({{"type", summary ? "summary_text" : "reasoning_text"}, {"text", text}}));
  Json out = {{"id", id}, {"type", "reasoning"}, {"summary", Json::array()}};
  if (!summary) out["content"] = Json::array();
  out[summary ? "summary" : "content"] = std::move(parts);
  out["encrypted_content"] = nullptr;
  out["status"] = status;
  return out;
}

Json text_part(const std::string& text) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", Json::array()},
          {"logprobs", Json::array()}};
}

Json message_item(const std::string& id, const std::string& text, std::string_view status) {
  Json content = Json::array();
  if (status != "in_progress") content.push_back(text_part(text));
  return {{"id", id},
          {"type", "message"},
          {"role", "assistant"},
          {"status", status},
          {"content", std::move(content)}};
}

std::string custom_input(const std::string& arguments) {
  const auto parsed = parse_body(arguments);
  const Json* const object = std::get_if<Json>(&parsed);
  if (object == nullptr || !object->contains("input") || !(*object)["input"].is_string())
    return arguments;
  return (*object)["input"].get<std::string>();
}

Json call_item(const std::string& id, const ToolCall& call, const Shape& shape,
               std::string_view status) {
  const Json* const special = shape.special(call.name);
  const bool custom = shape.is_custom(call.name);
  Json out = {{"id", id},
              {"type", custom ? "custom_tool_call" : "function_call"},
              {"call_id", call.id},
              {"name", special != nullptr ? (*special)["name"] : Json(call.name)}};
  if (special != nullptr && special->contains("namespace"))
    out["namespace"] = (*special)["namespace"];
  if (custom)
    out["input"] = call.arguments.empty() ? std::string() : custom_input(call.arguments);
  else
    out["arguments"] = call.arguments;
  out["status"] = status;
  return out;
}

Json response_of(const AnswerHead& head, const Shape& shape, std::string_view status) {
  Json out = {{"id", "resp_" + head.id},
              {"object", "response"},
              {"created_at", head.created_s},
              {"status", status},
              {"background", false},
              {"error", nullptr},
              {"incomplete_details", nullptr},
              {"model", head.model},
              {"output", Json::array()},
              {"previous_response_id", nullptr},
              {"store", false},
              {"usage", nullptr},
              {"system_fingerprint", head.fingerprint}};
  out.update(shape.shown);
  return out;
}

Json usage_of(const Usage& usage) {
  return {{"input_tokens", usage.n_prompt},
          {"input_tokens_details", {{"cached_tokens", usage.n_cached}, {"cache_write_tokens", 0}}},
          {"output_tokens", usage.n_completion},
          {"output_tokens_details", {{"reasoning_tokens", usage.n_reasoning}}},
          {"total_tokens", usage.n_prompt + usage.n_completion}};
}

Json failure_of(const ApiError& error) {
  const std::string_view code = openai_code(error.kind);
  std::string message = error.message;
  if (error.kind == ApiError::Kind::rate_limit && error.retry_after_s > 0)  // Codex looks for it
    message += fmt::format(" Please try again in {}s.", error.retry_after_s);
  return {{"code", code.empty() ? "invalid_prompt" : code}, {"message", std::move(message)}};
}

std::string item_id(std::string_view prefix, const AnswerHead& head, size_t index) {
  return fmt::format("{}_{}_{}", prefix, head.id, index);
}

}  // namespace millrace::serve::responses
