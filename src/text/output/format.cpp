#include "text/output/format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace millrace {
namespace {

bool has(std::string_view source, std::string_view what) {
  return source.find(what) != std::string_view::npos;
}

bool is_word(char c) {
  return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

// Whether an expression or statement of the template, outside its strings, has this name in it.
bool uses_variable(std::string_view source, std::string_view name) {
  bool in_code = false;
  char quote = 0;
  for (size_t i = 0; i + 1 < source.size(); ++i) {
    const char c = source[i];
    if (!in_code) {
      in_code = c == '{' && (source[i + 1] == '{' || source[i + 1] == '%');
    } else if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if ((c == '%' || c == '}') && source[i + 1] == '}') {
      in_code = false;
    } else if (source.substr(i).starts_with(name) && !is_word(source[i - 1]) &&
               (i + name.size() == source.size() || !is_word(source[i + name.size()]))) {
      return true;
    }
  }
  return false;
}

// The first whose text is in the template; the special come before the general.
struct Sign {
  std::string_view text;
  ToolFormat format;
};
constexpr Sign kSigns[] = {
    {"<|channel|>", ToolFormat::none},  // gpt-oss: not parsed
    {"<minimax:tool_call>", ToolFormat::minimax},
    {"<arg_key>", ToolFormat::glm},
    {"<function=", ToolFormat::qwen_xml},
    {"<|tool_calls_section_begin|>", ToolFormat::kimi},
    {"<｜tool▁calls▁begin｜>", ToolFormat::deepseek},
    {"[TOOL_CALLS]", ToolFormat::mistral},
    {"<|START_ACTION|>", ToolFormat::cohere},
    {"<|tool_call|>", ToolFormat::granite},
    {"<tool_call>", ToolFormat::hermes},
    {"<|python_tag|>", ToolFormat::llama3},
    {"ipython", ToolFormat::llama3},
};

std::optional<ToolFormat> format_by_source(std::string_view source) {
  const auto* const sign = std::find_if(std::begin(kSigns), std::end(kSigns),
                                        [&](const Sign& s) { return has(source, s.text); });
  if (sign == std::end(kSigns)) return std::nullopt;
  if (sign->format == ToolFormat::mistral && has(source, "[ARGS]")) return ToolFormat::mistral_args;
  if (sign->format == ToolFormat::deepseek && !has(source, "```json"))
    return ToolFormat::deepseek_v31;
  return sign->format;
}

ReasoningFormat reasoning_by_source(std::string_view source) {
  for (int i = 1; i < kReasoningFormats; ++i) {
    const auto format = static_cast<ReasoningFormat>(i);
    const ReasoningMarkers markers = markers_of(format);
    if (has(source, markers.open) || has(source, markers.close)) return format;
  }
  return ReasoningFormat::none;
}

}  // namespace

std::string_view name_of(ToolFormat format) {
  constexpr std::array<std::string_view, kToolFormats> kNames = {
      "none",         "hermes", "qwen_xml", "llama3", "mistral", "mistral_args", "deepseek",
      "deepseek_v31", "json",   "granite",  "cohere", "glm",     "minimax",      "kimi"};
  return kNames[static_cast<size_t>(format)];
}

std::string_view name_of(ReasoningFormat format) {
  constexpr std::array<std::string_view, kReasoningFormats> kNames = {"none", "think", "brackets",
                                                                      "seed", "cohere"};
  return kNames[static_cast<size_t>(format)];
}

ReasoningMarkers markers_of(ReasoningFormat format) {
  constexpr std::array<ReasoningMarkers, kReasoningFormats> kMarkers = {
      {{"", ""},
       {"<think>", "</think>"},
       {"[THINK]", "[/THINK]"},
       {"<seed:think>", "</seed:think>"},
       {"<|START_THINKING|>", "<|END_THINKING|>"}}};
  return kMarkers[static_cast<size_t>(format)];
}

OutputFormat find_output_format(std::string_view source,
                                const std::function<bool(std::string_view)>& has_token) {
  const auto in_vocabulary = [&](std::string_view text) { return has_token && has_token(text); };
  OutputFormat out;
  out.reasoning = reasoning_by_source(source);
  // Models that learned to reason from another keep their family's template.
  if (out.reasoning == ReasoningFormat::none && in_vocabulary("<think>"))
    out.reasoning = ReasoningFormat::think;
  const bool shows_tools = uses_variable(source, "tools");
  const ToolFormat otherwise = !shows_tools                      ? ToolFormat::hermes
                               : in_vocabulary("<|python_tag|>") ? ToolFormat::llama3
                                                                 : ToolFormat::json;
  out.tools = format_by_source(source).value_or(otherwise);
  out.needs_instructions = !shows_tools;
  out.needs_written_calls = !has(source, "tool_calls");
  return out;
}

bool opens_reasoning(ReasoningFormat format, std::string_view rendered_prompt) {
  const std::string_view open = markers_of(format).open;
  const size_t last = rendered_prompt.find_last_not_of(" \t\r\n");
  if (open.empty() || last == std::string_view::npos) return false;
  return rendered_prompt.substr(0, last + 1).ends_with(open);
}

}  // namespace millrace
