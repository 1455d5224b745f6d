#include "text/output/format.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

namespace millrace {
namespace {

TEST(OutputFormat, IsFoundFromTheTemplate) {
  const auto found = [](std::string_view source) { return find_output_format(source).tools; };
  EXPECT_EQ(found("{% if tools %}<tool_call>{% endif %}"), ToolFormat::hermes);
  EXPECT_EQ(found("{{ tools }}<tool_call>\n<function=f>"), ToolFormat::qwen_xml);
  EXPECT_EQ(found("{{ tools }}[TOOL_CALLS]"), ToolFormat::mistral);
  EXPECT_EQ(found("{{ tools }}[TOOL_CALLS][ARGS]"), ToolFormat::mistral_args);
  EXPECT_EQ(found("{{ tools }}<｜tool▁calls▁begin｜>```json"), ToolFormat::deepseek);
  EXPECT_EQ(found("{{ tools }}<｜tool▁calls▁begin｜>"), ToolFormat::deepseek_v31);
  EXPECT_EQ(found("{{ tools }}<|channel|>"), ToolFormat::none);
  EXPECT_EQ(found("{{ tools|tojson }}"), ToolFormat::json);
}

TEST(OutputFormat, WithoutToolsTheModelNeedsInstructions) {
  for (const char* source : {"", "{{ messages }} tools", "{# tools #}", "{{ 'tools' }}",
                             "{{ tools_used }}{{ my_tools }}", "{% if x == \"\\\" tools\" %}",
                             "{{ message.tool_calls }}"}) {
    const OutputFormat format = find_output_format(source);
    EXPECT_TRUE(format.needs_instructions) << source;
    EXPECT_EQ(format.tools, ToolFormat::hermes) << source;
  }
  EXPECT_FALSE(find_output_format("{%- for t in tools -%}").needs_instructions);
  EXPECT_FALSE(find_output_format("{{tools}}").needs_instructions);
  EXPECT_TRUE(find_output_format("{{tools}}").needs_written_calls);
  EXPECT_FALSE(find_output_format("{{tools}}{{m.tool_calls}}").needs_written_calls);
}

TEST(OutputFormat, TheVocabularyDecidesWhatTheTemplateLeavesOpen) {
  const auto has = [](std::string_view text) {
    return text == "<think>" || text == "<|python_tag|>";
  };
  EXPECT_EQ(find_output_format("{{ tools }}", has).tools, ToolFormat::llama3);
  EXPECT_EQ(find_output_format("{{ tools }}", has).reasoning, ReasoningFormat::think);
  EXPECT_EQ(find_output_format("{{ tools }}").reasoning, ReasoningFormat::none);
  EXPECT_EQ(find_output_format("[THINK]", has).reasoning, ReasoningFormat::brackets);
}

TEST(OutputFormat, SaysWhetherAPromptOpensReasoning) {
  EXPECT_TRUE(opens_reasoning(ReasoningFormat::think, "<|im_start|>assistant\n<think>\n"));
  EXPECT_TRUE(opens_reasoning(ReasoningFormat::think, "<think>"));
  EXPECT_FALSE(opens_reasoning(ReasoningFormat::think, "<think>\n\n</think>\n\n"));
  EXPECT_FALSE(opens_reasoning(ReasoningFormat::none, "<think>"));
  EXPECT_FALSE(opens_reasoning(ReasoningFormat::brackets, "<think>"));
  EXPECT_FALSE(opens_reasoning(ReasoningFormat::think, ""));
}

TEST(OutputFormat, MarkersOccurInTheLiterals) {
  for (int i = 1; i < kToolFormats; ++i) {
    const auto format = static_cast<ToolFormat>(i);
    const CallSyntax& syntax = call_syntax(format);
    EXPECT_FALSE(syntax.before_name.empty() && syntax.opener.empty()) << name_of(format);
    EXPECT_EQ(syntax.has_json_arguments(), syntax.after_value.empty()) << name_of(format);
  }
}

TEST(OutputFormat, IsFoundForRealTemplates) {
  struct Expected {
    ToolFormat tools;
    ReasoningFormat reasoning;
    bool needs_instructions = false, needs_written_calls = false;
  };
  using R = ReasoningFormat;
  const std::map<std::string, Expected> all = {
      {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", {ToolFormat::cohere, R::cohere}},
      {"GLM-4.6", {ToolFormat::glm, R::think}},
      {"HuggingFaceTB-SmolLM3-3B", {ToolFormat::hermes, R::think, true, true}},
      {"Kimi-K2-Instruct", {ToolFormat::kimi, R::none}},
      {"MiniMax-M2", {ToolFormat::minimax, R::think}},
      {"Mistral-Small-3.2-24B-Instruct-2506", {ToolFormat::mistral_args, R::none}},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", {ToolFormat::hermes, R::none}},
      {"Qwen-QwQ-32B", {ToolFormat::hermes, R::think}},
      {"Qwen-Qwen2.5-7B-Instruct", {ToolFormat::hermes, R::none}},
      {"Qwen-Qwen3-0.6B", {ToolFormat::hermes, R::think}},
      {"Qwen3-Coder", {ToolFormat::qwen_xml, R::none}},
      {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", {ToolFormat::deepseek, R::think, true}},
      {"deepseek-ai-DeepSeek-V3.1", {ToolFormat::deepseek_v31, R::think, true}},
      {"google-gemma-2-2b-it", {ToolFormat::hermes, R::none, true, true}},
      {"ibm-granite-granite-3.3-2B-Instruct", {ToolFormat::granite, R::think, false, true}},
      {"meta-llama-Llama-3.1-8B-Instruct", {ToolFormat::llama3, R::none}},
      {"meta-llama-Llama-3.2-3B-Instruct", {ToolFormat::llama3, R::none}},
      {"microsoft-Phi-3.5-mini-instruct", {ToolFormat::hermes, R::none, true, true}},
      {"mistralai-Mistral-Nemo-Instruct-2407", {ToolFormat::mistral, R::none}},
      {"openai-gpt-oss-120b", {ToolFormat::none, R::none}},
  };
  const char* data = std::getenv("MILLRACE_TEST_DATA");
  const auto folder = std::filesystem::path(data == nullptr ? "" : data) / "chat-templates";
  if (data == nullptr || !std::filesystem::exists(folder))
    GTEST_SKIP() << "MILLRACE_TEST_DATA names no folder with chat-templates/*.jinja";
  for (const auto& [name, expected] : all) {
    std::ifstream in(folder / (name + ".jinja"));
    if (!in) continue;
    const std::string source(std::istreambuf_iterator<char>(in), {});
    const OutputFormat found = find_output_format(source);
    EXPECT_EQ(name_of(found.tools), name_of(expected.tools)) << name;
    EXPECT_EQ(name_of(found.reasoning), name_of(expected.reasoning)) << name;
    EXPECT_EQ(found.needs_instructions, expected.needs_instructions) << name;
    EXPECT_EQ(found.needs_written_calls, expected.needs_written_calls) << name;
  }
}

}  // namespace
}  // namespace millrace
