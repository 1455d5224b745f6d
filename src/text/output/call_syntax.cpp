// The spelling of calls, format by format: as the templates that the formats are found by write it.
#include <array>

#include "text/output/format.h"

namespace millrace {
namespace {

std::array<CallSyntax, kToolFormats> make_syntaxes() {
  std::array<CallSyntax, kToolFormats> all;
  const auto at = [&](ToolFormat f) -> CallSyntax& { return all[static_cast<size_t>(f)]; };
  constexpr std::string_view kName = R"({"name": ")", kArguments = R"(", "arguments": )",
                             kParameters = R"(", "parameters": )";
  at(ToolFormat::hermes) = {.opener = "<tool_call>",
                            .before_name = "\n{\"name\": \"",
                            .after_name = kArguments,
                            .after_arguments = "}\n",
                            .closer = "</tool_call>",
                            .separator = "\n",
                            .markers = {"<tool_call>", "</tool_call>"}};
  at(ToolFormat::qwen_xml) = {.opener = "<tool_call>",
                              .before_name = "\n<function=",
                              .after_name = ">\n",
                              .after_arguments = "</function>\n",
                              .closer = "</tool_call>",
                              .separator = "\n",
                              .before_key = "<parameter=",
                              .after_key = ">\n",
                              .after_value = "\n</parameter>\n",
                              .markers = {"<tool_call>", "</tool_call>"}};
  at(ToolFormat::llama3) = {.before_name = kName,
                            .after_name = kParameters,
                            .after_arguments = "}",
                            .separator = "; ",
                            .markers = {"<|python_tag|>"}};
  at(ToolFormat::mistral) = {.section_open = "[TOOL_CALLS][",
                             .before_name = kName,
                             .after_name = kArguments,
                             .after_arguments = "}",
                             .separator = ", ",
                             .section_close = "]",
                             .markers = {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"}};
  at(ToolFormat::mistral_args) = {.opener = "[TOOL_CALLS]",
                                  .after_name = "[ARGS]",
                                  .markers = {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"}};
  const std::vector<std::string_view> deepseek = {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>",
                                                  "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
                                                  "<｜tool▁calls▁end｜>"};
  at(ToolFormat::deepseek) = {.section_open = "<｜tool▁calls▁begin｜>",
                              .opener = "<｜tool▁call▁begin｜>",
                              .before_name = "function<｜tool▁sep｜>",
                              .after_name = "\n```json\n",
                              .after_arguments = "\n```",
                              .closer = "<｜tool▁call▁end｜>",
                              .separator = "\n",
                              .section_close = "<｜tool▁calls▁end｜>",
                              .markers = deepseek};
  at(ToolFormat::deepseek_v31) = {.section_open = "<｜tool▁calls▁begin｜>",
                                  .opener = "<｜tool▁call▁begin｜>",
                                  .after_name = "<｜tool▁sep｜>",
                                  .closer = "<｜tool▁call▁end｜>",
                                  .section_close = "<｜tool▁calls▁end｜>",
                                  .markers = deepseek};
  at(ToolFormat::json) = {
      .before_name = kName, .after_name = kArguments, .after_arguments = "}", .separator = "\n"};
  at(ToolFormat::granite) = {.section_open = "<|tool_call|>[",
                             .before_name = kName,
                             .after_name = kArguments,
                             .after_arguments = "}",
                             .separator = ", ",
                             .section_close = "]",
                             .markers = {"<|tool_call|>", "<tool_call>"}};
  at(ToolFormat::cohere) = {
      .section_open = "<|START_ACTION|>[\n    ",
      .before_name = R"({"tool_name": ")",
      .after_name = kParameters,
      .after_arguments = "}",
      .separator = ",\n    ",
      .section_close = "\n]<|END_ACTION|>",
      .markers = {"<|START_ACTION|>", "<|END_ACTION|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"}};
  at(ToolFormat::glm) = {.opener = "<tool_call>",
                         .after_name = "\n",
                         .closer = "</tool_call>",
                         .separator = "\n",
                         .before_key = "<arg_key>",
                         .after_key = "</arg_key>\n<arg_value>",
                         .after_value = "</arg_value>\n",
                         .markers = {"<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>",
                                     "<arg_value>", "</arg_value>"}};
  at(ToolFormat::minimax) = {.section_open = "<minimax:tool_call>\n",
                             .before_name = "<invoke name=\"",
                             .after_name = "\">\n",
                             .after_arguments = "</invoke>\n",
                             .section_close = "</minimax:tool_call>",
                             .before_key = "<parameter name=\"",
                             .after_key = "\">",
                             .after_value = "</parameter>\n",
                             .markers = {"<minimax:tool_call>", "</minimax:tool_call>"}};
  at(ToolFormat::kimi) = {.section_open = "<|tool_calls_section_begin|>",
                          .opener = "<|tool_call_begin|>",
                          .before_name = "functions.",
                          .after_name = ":0<|tool_call_argument_begin|>",
                          .closer = "<|tool_call_end|>",
                          .section_close = "<|tool_calls_section_end|>",
                          .markers = {"<|tool_calls_section_begin|>", "<|tool_call_begin|>",
                                      "<|tool_call_argument_begin|>", "<|tool_call_end|>",
                                      "<|tool_calls_section_end|>"}};
  return all;
}

}  // namespace

const CallSyntax& call_syntax(ToolFormat format) {
  static const auto kSyntaxes = make_syntaxes();
  return kSyntaxes[static_cast<size_t>(format)];
}

}  // namespace millrace
