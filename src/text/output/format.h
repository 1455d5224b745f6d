// How a model writes what is more than text: tool calls and reasoning. Both are found from the
// source of its chat template, which was made for what the model was trained on.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

namespace millrace {

enum class ToolFormat : unsigned char {
  none,          // not known: calls stay text
  hermes,        // <tool_call>{"name": ..., "arguments": {...}}</tool_call>: Qwen 2.5 and 3, Hermes
  qwen_xml,      // <tool_call><function=f><parameter=x>...: Qwen3-Coder
  llama3,        // {"name": ..., "parameters": {...}}, at times after <|python_tag|>
  mistral,       // [TOOL_CALLS][{"name": ..., "arguments": {...}}]
  mistral_args,  // [TOOL_CALLS]name[ARGS]{...}: since Mistral Small 3.2
  deepseek,      // V3 and R1: the name on a line, the arguments in a code fence
  deepseek_v31,  // name, separator, arguments
  json,          // {"name": ..., "arguments": {...}} as the whole answer
  granite,       // <|tool_call|>[{"name": ..., "arguments": {...}}]
  cohere,        // <|START_ACTION|>[{"tool_name": ..., "parameters": {...}}]<|END_ACTION|>
  glm,           // <tool_call>name<arg_key>x</arg_key><arg_value>...: GLM 4.5 and later
  minimax,       // <minimax:tool_call><invoke name="f"><parameter name="x">...
  kimi,          // <|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{...}
};
inline constexpr int kToolFormats = static_cast<int>(ToolFormat::kimi) + 1;

enum class ReasoningFormat : unsigned char {
  none,
  think,     // <think>...</think>
  brackets,  // [THINK]...[/THINK]: Magistral
  seed,      // <seed:think>...</seed:think>
  cohere,    // <|START_THINKING|>...<|END_THINKING|>
};
inline constexpr int kReasoningFormats = static_cast<int>(ReasoningFormat::cohere) + 1;

std::string_view name_of(ToolFormat format);
std::string_view name_of(ReasoningFormat format);

struct OutputFormat {
  ToolFormat tools = ToolFormat::none;
  ReasoningFormat reasoning = ReasoningFormat::none;
  // What the template leaves out and has to be put into the messages (messages.h): the tools and
  // how to call them, and the calls of earlier turns. A template that knows nothing of tools at all
  // gets hermes, which is the easiest to explain.
  bool needs_instructions = false, needs_written_calls = false;
  bool has_system_role = true;
};

// By the source alone; output_format_of() in messages.h tries the template out as well. `has_token`
// says whether the vocabulary has a control or added token of this text; it decides where the
// template leaves something open. May be empty.
OutputFormat find_output_format(std::string_view template_source,
                                const std::function<bool(std::string_view)>& has_token = {});

struct ReasoningMarkers {
  std::string_view open, close;
};
ReasoningMarkers markers_of(ReasoningFormat format);

// Whether the model continues inside a block of reasoning: the prompt ends with what opens it.
bool opens_reasoning(ReasoningFormat format, std::string_view rendered_prompt);

// How an answer with calls is spelled, as literals around the names and the arguments:
//   section_open (opener before_name NAME after_name ARGUMENTS after_arguments closer)
//   separator (opener ...) ... section_close
// ARGUMENTS is a JSON object; where `before_key` is not empty it is, for each argument,
//   before_key KEY after_key VALUE after_value
// with strings written as they are and other values as JSON. Kimi numbers the calls of a
// conversation: the 0 in its after_name stands for any number.
struct CallSyntax {
  std::string_view section_open = {}, opener = {}, before_name = {}, after_name = {},
                   after_arguments = {}, closer = {}, separator = {}, section_close = {};
  std::string_view before_key = {}, after_key = {}, after_value = {};
  // What of the literals can be a token of its own, a control token among them.
  std::vector<std::string_view> markers = {};

  bool has_json_arguments() const { return before_key.empty(); }
};
const CallSyntax& call_syntax(ToolFormat format);

}  // namespace millrace
