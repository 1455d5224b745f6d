#include "text/output/call_reader.h"

namespace millrace {

CallReader::Found CallReader::push(char c, CallSink& sink) {
  if (!in_call_) held_ += c;
  return held_.size() > kMaxHeldBytes ? Found::not_a_call : read(c, sink);
}

bool CallReader::begin(std::string_view name, CallSink& sink) {
  in_call_ = sink.begin(name);
  if (in_call_) held_.clear();
  return in_call_;
}

void CallReader::end(bool is_truncated, CallSink& sink) {
  in_call_ = false;
  held_.clear();
  sink.end(is_truncated);
}

CallOpeners openers_of(ToolFormat format) {
  switch (format) {
    case ToolFormat::none:
      return {};
    case ToolFormat::hermes:
    case ToolFormat::glm:
      return {.first = "<tool_call>"};
    case ToolFormat::qwen_xml:  // which at times leaves the first out
      return {.first = "<tool_call>", .second = "<function="};
    case ToolFormat::llama3:
      return {.first = "<|python_tag|>", .bare_object = true};
    case ToolFormat::mistral:
    case ToolFormat::mistral_args:
      return {.first = "[TOOL_CALLS]"};
    case ToolFormat::deepseek:
    case ToolFormat::deepseek_v31:
      return {.first = "<｜tool▁calls▁begin｜>", .second = "<｜tool▁call▁begin｜>"};
    case ToolFormat::json:
      return {.bare_object = true, .bare_list = true};
    case ToolFormat::granite:
      return {.first = "<|tool_call|>", .second = "<tool_call>"};
    case ToolFormat::cohere:
      return {.first = "<|START_ACTION|>"};
    case ToolFormat::minimax:
      return {.first = "<minimax:tool_call>"};
    case ToolFormat::kimi:
      return {.first = "<|tool_calls_section_begin|>", .second = "<|tool_call_begin|>"};
  }
  return {};
}

std::unique_ptr<CallReader> make_call_reader(ToolFormat format, std::string_view opener,
                                             const ToolSet& tools) {
  switch (format) {
    case ToolFormat::qwen_xml:
    case ToolFormat::glm:
    case ToolFormat::minimax:
      return make_tag_calls(format, opener, tools);
    case ToolFormat::mistral:
    case ToolFormat::mistral_args:
    case ToolFormat::deepseek:
    case ToolFormat::deepseek_v31:
    case ToolFormat::kimi:
      return make_named_calls(format, opener);
    case ToolFormat::cohere:
      return make_json_calls("<|END_ACTION|>", false);
    case ToolFormat::hermes:
      return make_json_calls("</tool_call>", false);
    case ToolFormat::granite:
      return make_json_calls(opener == "<tool_call>" ? "</tool_call>" : "", false);
    case ToolFormat::none:
    case ToolFormat::llama3:
    case ToolFormat::json:
      break;
  }
  return make_json_calls("", opener.empty());
}

std::unique_ptr<CallReader> make_json_instead(ToolFormat format) {
  const bool is_mistral = format == ToolFormat::mistral || format == ToolFormat::mistral_args;
  return make_json_calls(is_mistral ? "" : call_syntax(format).closer, false);
}

}  // namespace millrace
