#include "text/output/output_parser.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "text/output/output_test_support.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;
using Kind = OutputEvent::Kind;

const Json& tools() {
  static const Json kTools = Json::parse(R"([
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
      "text": {"type": "string"}, "n": {"type": "integer"}, "on": {"type": "boolean"},
      "list": {"type": "array"}, "map": {"type": "object"}, "any": {},
      "maybe": {"type": ["string", "null"]},
      "choice": {"anyOf": [{"type": "number"}, {"type": "null"}]}}}}},
    {"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}}])");
  return kTools;
}

OutputRules rules_for(ToolFormat format, bool in_reasoning = false) {
  OutputRules rules;
  rules.format.tools = format;
  rules.format.reasoning =
      format == ToolFormat::cohere ? ReasoningFormat::cohere : ReasoningFormat::think;
  rules.tools = ToolSet(tools());
  rules.in_reasoning = in_reasoning;
  return rules;
}

struct Case {
  ToolFormat format;
  std::string text, expected;
};

std::vector<Case> hermes_cases() {
  constexpr auto kHermes = ToolFormat::hermes;
  return {
      {kHermes, "Hello there.\n", "C[Hello there.\n]"},
      {kHermes, "", ""},
      {kHermes, "  \n", "C[  \n]"},
      {kHermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": 1}}\n</tool_call>",
       "f({\"n\": 1})"},
      // Byte for byte as it was written.
      {kHermes,
       "<tool_call>{\"name\":\"f\",\"arguments\":{ \"n\" :\t1.50 ,\n\"text\":\"\\u00e9\"}}",
       "f({ \"n\" :\t1.50 ,\n\"text\":\"\\u00e9\"})"},
      {kHermes, "Let me look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n",
       "C[Let me look.]f({})"},
      {kHermes, "Look.\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
       "C[Look.\n]f({})"},
      {kHermes, "\n\n <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "f({})"},
      // Several, with and without text around them.
      {kHermes,
       "A\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\nB\n"
       "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>\n\nC\n",
       "C[A]f({})C[\nB]g({})C[\n\nC\n]"},
      {kHermes,
       "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n"
       "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>",
       "f({})g({})"},
      // Without what closes them, or with too few braces.
      {kHermes,
       "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n"
       "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}",
       "f({})g({})"},
      {kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"n\": 1}</tool_call>ok",
       "f({\"n\": 1})C[ok]"},
      {kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"n\": 1</tool_call>ok",
       "f({\"n\": 1~C[ok]"},
      {kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": {}}\nDone.", "f({})C[\nDone.]"},
      // Several in one block.
      {kHermes,
       "<tool_call>[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {}}]"
       "</tool_call>",
       "f({})g({})"},
      {kHermes,
       "<tool_call>{\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"g\", \"arguments\": {}}"
       "</tool_call>",
       "f({})g({})"},
      // Markers, braces and quotes inside strings.
      {kHermes,
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"text\": \"</tool_call>{<tool_call>}\\\"}\"}}"
       "</tool_call>",
       "f({\"text\": \"</tool_call>{<tool_call>}\\\"}\"})"},
      {kHermes,
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"map\": {\"a\": [{}, \"]}\"]}}}</tool_call>",
       "f({\"map\": {\"a\": [{}, \"]}\"]}})"},
      {kHermes,
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"text\": \"Grüße 漢字 "
       "🙂\"}}</tool_call>",
       "f({\"text\": \"Grüße 漢字 🙂\"})"},
      // Other spellings.
      {kHermes, "<tool_call>{\"arguments\": {\"n\": 1}, \"name\": \"f\"}</tool_call>",
       "f({\"n\": 1})"},
      {kHermes, "<tool_call>{\"name\": \"f\", \"parameters\": {\"n\": 1}}</tool_call>",
       "f({\"n\": 1})"},
      {kHermes,
       "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"text\\\": "
       "\\\"a\\\\nb\\\"}\"}</tool_call>",
       "f({\"text\": \"a\\nb\"})"},
      {kHermes, "<tool_call>{\"arguments\": \"{\\\"n\\\": 1}\", \"name\": \"f\"}</tool_call>",
       "f({\"n\": 1})"},
      {kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": \"\"}</tool_call>", "f({})"},
      {kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": null}</tool_call>", "f({})"},
      {kHermes, "<tool_call>{\"name\": \"f\"}</tool_call>", "f({})"},
      {kHermes,
       "<tool_call>{\"id\": [\"}\"], \"name\": \"f\", \"arguments\": {}, \"x\": {\"name\": 1}}"
       "</tool_call>",
       "f({})"},
      {kHermes,
       "<tool_call>{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": {\"n\": "
       "1}}}"
       "</tool_call>",
       "f({\"n\": 1})"},
      {kHermes, "<tool_call>  {  \"name\"  :  \"f\"  ,  \"arguments\"  :  {}  }  </tool_call>  ",
       "f({})"},
      {kHermes, "<tool_call>{\"name\": \"h\\u00e9\", \"arguments\": {}}</tool_call>", "hé({})"},
      // No calls.
      {kHermes, "Use <tool_call> and </tool_call>.", "C[Use <tool_call> and </tool_call>.]"},
      {kHermes, "<tool_call>{\"a\": 1}</tool_call>", "C[<tool_call>{\"a\": 1}</tool_call>]"},
      {kHermes, "<tool_call>[]</tool_call>", "C[<tool_call>[]</tool_call>]"},
      {kHermes, "<tool_call>\n\n</tool_call>", "C[<tool_call>\n\n</tool_call>]"},
      {kHermes, "<tool_call><tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
       "C[<tool_call>]f({})"},
      {kHermes, "<<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "C[<]f({})"},
      {kHermes, "a <tool_cal", "C[a <tool_cal]"},
      {kHermes, "<tool_call>{\"name\": \"\", \"arguments\": {}}",
       "C[<tool_call>{\"name\": \"\", \"arguments\": {}}]"},
      // In a code fence only what names a tool.
      {kHermes, "```\n<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>\n```\n",
       "C[```\n<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>\n```\n]"},
      {kHermes, "```\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n```\n",
       "C[```]f({})C[\n```\n]"},
      {kHermes, "```\ncode\n```\n<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>",
       "C[```\ncode\n```]weather({})"},
      // Cut short.
      {kHermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"text\": \"a",
       "f({\"text\": \"a~"},
      {kHermes, "<tool_call>\n{\"name\": \"f\", \"argu", "f(~"},
      {kHermes, "<tool_call>\n{\"name\": \"f", "C[<tool_call>\n{\"name\": \"f]"},
      {kHermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_c", "f({})"},
  };
}

std::vector<Case> reasoning_cases() {
  constexpr auto kHermes = ToolFormat::hermes;
  return {
      {kHermes, "<think>\nHm.\n</think>\n\nHello", "R[Hm.]C[Hello]"},
      {kHermes, "\n<think>Hm.\n\nWell.</think>Hello", "R[Hm.\n\nWell.]C[Hello]"},
      {kHermes, "<think>\n\n</think>\n\nHello", "C[Hello]"},
      {kHermes, "<think>Hm", "R[Hm]"},
      {kHermes, "<think>Hm.\n", "R[Hm.\n]"},
      {kHermes, "The <think> tag </think>", "C[The <think> tag </think>]"},
      {kHermes,
       "<think>\nHm.\n</think>\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
       "R[Hm.]f({})"},
      {kHermes, "<think>a</think>b <think>c</think>", "R[a]C[b <think>c</think>]"},
      {kHermes,
       "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n<think>\na\n</think>\nb",
       "f({})R[a]C[b]"},
      // A call inside reasoning ends it where it names a tool of the request.
      {kHermes,
       "<think>Hm.\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n</think>\nok",
       "R[Hm.]f({})C[ok]"},
      {kHermes, "<think>Hm <tool_call>{\"name\": \"h\", \"arguments\": {}}</tool_call></think>ok",
       "R[Hm <tool_call>{\"name\": \"h\", \"arguments\": {}}</tool_call>]C[ok]"},
  };
}

std::vector<Case> json_cases() {
  constexpr auto kLlama = ToolFormat::llama3;
  constexpr auto kJson = ToolFormat::json;
  constexpr auto kMistral = ToolFormat::mistral;
  return {
      {kLlama, "{\"name\": \"f\", \"parameters\": {\"n\": 1}}", "f({\"n\": 1})"},
      {kLlama, "\n\n{\"name\": \"f\", \"parameters\": {\"n\": \"}\"}}\n", "f({\"n\": \"}\"})"},
      {kLlama, "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}", "f({})"},
      {kLlama, "{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}", "f({})"},
      {kLlama, "{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {}}",
       "f({})g({})"},
      {kLlama, "<|python_tag|>print(1)", "C[<|python_tag|>print(1)]"},
      {kLlama, "{\"name\": \"Ann\", \"age\": 3}", "C[{\"name\": \"Ann\", \"age\": 3}]"},
      {kLlama, "{\"name\": \"Ann\"}", "C[{\"name\": \"Ann\"}]"},
      {kLlama, "See {\"name\": \"f\", \"parameters\": {}}",
       "C[See {\"name\": \"f\", \"parameters\": {}}]"},
      {kLlama, "{x}", "C[{x}]"},
      {kJson, "{\"name\": \"f\", \"arguments\": {\"n\": 1}}", "f({\"n\": 1})"},
      {kJson, "[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {}}]",
       "f({})g({})"},
      {kJson, "[1, 2]", "C[[1, 2]]"},
      {kJson, "{\"name\": \"f\", \"arguments\": {\"n\":", "f({\"n\":~"},
      {kMistral,
       "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"n\": 1}, \"id\": \"123456789\"}]",
       "f({\"n\": 1})"},
      {kMistral,
       "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}, "
       "{\"name\": \"g\", \"arguments\": {\"a\": \"[TOOL_CALLS]\"}}]",
       "f({})g({\"a\": \"[TOOL_CALLS]\"})"},
      {kMistral, "Hi[TOOL_CALLS]f[ARGS]{\"n\": 1}", "C[Hi]f({\"n\": 1})"},
      {ToolFormat::mistral_args, "[TOOL_CALLS]f[CALL_ID]abc[ARGS]{\"n\": 1}[TOOL_CALLS]g[ARGS]{}",
       "f({\"n\": 1})g({})"},
      {kMistral, "[TOOL_CALLS]f[ARGS]{\"n\": ", "f({\"n\": ~"},
      {kMistral, "[TOOL_CALLS][TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}]",
       "C[[TOOL_CALLS]]f({})"},
      {ToolFormat::granite, "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]\n", "f({})"},
      {ToolFormat::granite, "<tool_call>[{\"name\": \"f\", \"arguments\": {}}]\n", "f({})"},
      {ToolFormat::cohere,
       "<|START_THINKING|>Hm.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", "
       "\"tool_name\": \"f\", \"parameters\": {\"n\": 1}}\n]<|END_ACTION|>",
       "R[Hm.]f({\"n\": 1})"},
      {ToolFormat::cohere, "<|START_RESPONSE|>Hello<|END_RESPONSE|>", "C[Hello]"},
  };
}

std::vector<Case> named_cases() {
  constexpr auto kDeepSeek = ToolFormat::deepseek;
  constexpr auto kKimi = ToolFormat::kimi;
  return {
      {kDeepSeek,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"n\": "
       "1}\n```"
       "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "f({\"n\": 1})g({})"},
      {kDeepSeek,
       "Hm.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"text\": "
       "\"<｜tool▁call▁end｜>\"}"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "C[Hm.]f({\"text\": \"<｜tool▁call▁end｜>\"})"},
      {ToolFormat::deepseek_v31, "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜> ok",
       "f({})C[ ok]"},
      {kDeepSeek,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"n\":",
       "f({\"n\":~"},
      {kDeepSeek, "<｜tool▁calls▁begin｜>x", "C[<｜tool▁calls▁begin｜>x]"},
      {kDeepSeek, "<｜tool", "C[<｜tool]"},
      {kDeepSeek, "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls",
       "f({})"},
      {kKimi,
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
       "{\"n\": 1}<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}"
       "<|tool_call_end|><|tool_calls_section_end|>",
       "f({\"n\": 1})g({})"},
      {kKimi, "<|tool_call_begin|>f<|tool_call_argument_begin|><|tool_call_end|>", "f({})"},
      {kKimi, "<|tool_calls_section_begin|>.", "C[<|tool_calls_section_begin|>.]"},
  };
}

std::vector<Case> tag_cases() {
  constexpr auto kQwen = ToolFormat::qwen_xml;
  constexpr auto kGlm = ToolFormat::glm;
  constexpr auto kMiniMax = ToolFormat::minimax;
  return {
      {kQwen,
       "Now.\n<tool_call>\n<function=f>\n<parameter=text>\na \"b\"\n c\n</parameter>\n"
       "<parameter=n>\n7\n</parameter>\n</function>\n</tool_call>",
       "C[Now.]f({\"text\": \"a \\\"b\\\"\\n c\", \"n\": 7})"},
      {kQwen, "<tool_call><function=f></function></tool_call><tool_call><function=g></function>",
       "f({})g({})"},
      {kQwen, "<function=f>\n<parameter=n>1</parameter>\n</function>\n</tool_call>\nok",
       "f({\"n\": 1})C[\nok]"},
      {kQwen,
       "<tool_call>\n<function=f>\n<parameter=on>\nTrue\n</parameter>\n<parameter=list>\n[1, "
       "2]\n</parameter>\n<parameter=map>\n{\"a\": "
       "{}}\n</parameter>\n<parameter=any>\n5\n</parameter>"
       "\n<parameter=maybe>\nnull\n</parameter>\n<parameter=choice>\n-1.5\n</parameter>\n"
       "<parameter=other>\n5\n</parameter>\n</function>\n</tool_call>",
       "f({\"on\": true, \"list\": [1, 2], \"map\": {\"a\": {}}, \"any\": 5, \"maybe\": null, "
       "\"choice\": -1.5, \"other\": \"5\"})"},
      {kQwen,
       "<tool_call><function=f><parameter=n>many</parameter><parameter=map>{]</parameter>"
       "<parameter=any>null</parameter></function></tool_call>",
       "f({\"n\": \"many\", \"map\": \"{]\", \"any\": null})"},
      // What closes a value is text where nothing of the call follows it.
      {kQwen,
       "<tool_call><function=f><parameter=text></parameter> is a tag</parameter></parameter>"
       "</function></tool_call>",
       "f({\"text\": \"</parameter> is a tag</parameter>\"})"},
      {kQwen,
       "<tool_call><function=f><parameter=text></function></tool_call><tool_call>{}\n</parameter>"
       "</function></tool_call>",
       "f({\"text\": \"</function></tool_call><tool_call>{}\"})"},
      {kQwen, "<tool_call><function=f><parameter=text>\n\n\na\n\n\n</parameter></function>",
       "f({\"text\": \"\\n\\na\\n\\n\"})"},
      {kQwen, "<tool_call><function=f><parameter=text>ab\n", "f({\"text\": \"ab~"},
      {kQwen, "<tool_call><function=f><parameter=n>1", "f({\"n\": 1~"},
      {kQwen, "<tool_call><function=f>oops", "f(~C[oops]"},
      {kQwen, "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "f({})"},
      {kQwen, "a <function= b", "C[a <function= b]"},
      {kQwen, "<tool_call>\n<function=f", "C[<tool_call>\n<function=f]"},
      {kGlm,
       "\n<think>Hm.</think>\nNow.\n<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>a\nb</"
       "arg_value>"
       "\n<arg_key>n</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
       "R[Hm.]C[Now.]f({\"text\": \"a\\nb\", \"n\": 1})"},
      {kGlm,
       "<tool_call>f\n</tool_call>\n<tool_call>g<arg_key>a</arg_key><arg_value></arg_value>"
       "</tool_call>",
       "f({})g({\"a\": \"\"})"},
      {kGlm, "<tool_call> is a tag\n", "C[<tool_call> is a tag\n]"},
      {kMiniMax,
       "<minimax:tool_call>\n<invoke name=\"f\"><parameter name=\"text\">a\n</parameter>\n"
       "<parameter name=\"n\">1</parameter>\n</invoke>\n<invoke name=\"g\">\n</invoke>\n"
       "</minimax:tool_call>",
       "f({\"text\": \"a\\n\", \"n\": 1})g({})"},
      {kMiniMax, "<minimax:tool_call>\n</minimax:tool_call>",
       "C[<minimax:tool_call>\n</minimax:tool_call>]"},
  };
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& cases :
       {hermes_cases(), reasoning_cases(), json_cases(), named_cases(), tag_cases()})
    all.insert(all.end(), cases.begin(), cases.end());
  return all;
}

TEST(OutputParser, TakesTextApart) {
  for (const Case& c : all_cases())
    EXPECT_EQ(joined(parsed(rules_for(c.format), c.text)), c.expected)
        << name_of(c.format) << ": " << c.text;
}

TEST(OutputParser, DoesNotDependOnWhereTextIsCut) {
  Rng rng(1);
  for (const Case& c : all_cases()) {
    const OutputRules rules = rules_for(c.format);
    std::vector<size_t> each;
    for (size_t i = 1; i < c.text.size(); ++i) {
      each.push_back(i);
      ASSERT_EQ(joined(parsed(rules, c.text, {i})), c.expected) << c.text << "\ncut at " << i;
    }
    ASSERT_EQ(joined(parsed(rules, c.text, each)), c.expected) << c.text << "\nbyte by byte";
    for (int n = 0; n < 5; ++n) {
      std::vector<size_t> cuts;
      for (size_t i = rng.below(9); i < c.text.size(); i += rng.below(9)) cuts.push_back(i);
      ASSERT_EQ(joined(parsed(rules, c.text, cuts)), c.expected) << c.text;
    }
  }
}

// Every byte of a text without markers comes out, whatever it looked like.
TEST(OutputParser, LosesNothingOfWhatIsNoCall) {
  const std::string text =
      "a <tool_call> b [TOOL_CALLS] <function= c> <｜tool▁calls▁begin｜> <|tool_call|> d\n\n"
      "<minimax:tool_call> e <|python_tag|> f <|START_ACTION|> g <tool_call>";
  for (int i = 0; i < kToolFormats; ++i)
    EXPECT_EQ(joined(parsed(rules_for(static_cast<ToolFormat>(i)), text)), "C[" + text + "]")
        << name_of(static_cast<ToolFormat>(i));
}

TEST(OutputParser, CallsAreContentWithoutTools) {
  for (const Case& c : hermes_cases()) {
    OutputRules rules = rules_for(c.format);
    rules.tools = {};
    EXPECT_EQ(joined(parsed(rules, c.text)), c.text.empty() ? "" : "C[" + c.text + "]");
  }
  OutputRules rules = rules_for(ToolFormat::hermes, true);
  rules.tools = {};
  EXPECT_EQ(joined(parsed(rules, "Hm.\n</think>\n\nHi <tool_call>")), "R[Hm.]C[Hi <tool_call>]");
}

TEST(OutputParser, BeginsInReasoningWhereThePromptOpenedIt) {
  EXPECT_EQ(joined(parsed(rules_for(ToolFormat::hermes, true), "\nHm.\n</think>\n\nHi")),
            "R[Hm.]C[Hi]");
  OutputRules rules = rules_for(ToolFormat::hermes, true);
  rules.format.reasoning = ReasoningFormat::none;
  EXPECT_EQ(joined(parsed(rules, "Hm.</think>")), "C[Hm.</think>]");
  rules.format.reasoning = ReasoningFormat::brackets;
  EXPECT_EQ(joined(parsed(rules, "Hm.[/THINK]Hi")), "R[Hm.]C[Hi]");
}

TEST(OutputParser, UnknownNamesCanBeContent) {
  const std::string text = "<tool_call>{\"name\": \"h\", \"arguments\": {}}</tool_call>";
  OutputRules rules = rules_for(ToolFormat::hermes);
  EXPECT_EQ(joined(parsed(rules, text)), "h({})");
  rules.unknown_names = false;
  EXPECT_EQ(joined(parsed(rules, text)), "C[" + text + "]");
}

// How many bytes had come when the last event was given.
TEST(OutputParser, GivesWhatIsCertainAtOnce) {
  OutputParser parser(rules_for(ToolFormat::hermes));
  std::vector<OutputEvent> events;
  const auto after = [&](std::string_view text) {
    events.clear();
    parser.push(text, events);
    return joined(events);
  };
  EXPECT_EQ(after("Hello"), "C[Hello]");
  EXPECT_EQ(after(" <"), "C[ ]");
  EXPECT_EQ(after("b> "), "C[<b> ]");
  EXPECT_EQ(after("x\n"), "C[x]");
  EXPECT_EQ(after("<tool_call>\n{\"name\": \"f\", \"arguments\":"), "");
  EXPECT_EQ(after(" {"), "f({");
  EXPECT_EQ(after("\"text\": \"a"), "\"text\": \"a");
  EXPECT_EQ(after("</tool_call>"), "</tool_call>");
  EXPECT_EQ(after("\"}"), "\"})");
  EXPECT_EQ(after("}\n</tool_call>"), "");
  EXPECT_EQ(after("ok"), "C[ok]");
  EXPECT_EQ(parser.n_calls(), 1);
}

TEST(OutputParser, StreamsStringsOfTags) {
  OutputParser parser(rules_for(ToolFormat::qwen_xml));
  std::vector<OutputEvent> events;
  parser.push("<tool_call><function=f><parameter=text>\nab", events);
  EXPECT_EQ(joined(events), "f({\"text\": \"ab");
  parser.push("c<", events);
  EXPECT_EQ(joined(events), "f({\"text\": \"abc");
}

TEST(OutputParser, NumbersCalls) {
  std::vector<int> calls;
  const auto events = parsed(rules_for(ToolFormat::json),
                             "[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", "
                             "\"arguments\": {}}]");
  for (const OutputEvent& event : events) calls.push_back(event.call);
  EXPECT_EQ(calls, (std::vector<int>{0, 0, 0, 1, 1, 1}));
}

std::string with_control(ToolFormat format, const std::vector<std::string>& pieces,
                         bool with_tools = true) {
  OutputRules rules = rules_for(format);
  if (!with_tools) rules.tools = {};
  OutputParser parser(rules);
  std::vector<OutputEvent> events;
  for (const std::string& piece : pieces)
    if (piece.starts_with('!'))
      parser.push_control(std::string_view(piece).substr(1), events);
    else
      parser.push(piece, events);
  parser.finish(events);
  return joined(events);
}

TEST(OutputParser, TakesMarkersAsControlTokens) {
  EXPECT_EQ(with_control(ToolFormat::mistral, {"!<s>", "Hi", "![TOOL_CALLS]",
                                               "[{\"name\": \"f\", \"arguments\": {}}]", "!</s>"}),
            "C[Hi]f({})");
  EXPECT_EQ(with_control(ToolFormat::mistral, {"![TOOL_CALLS]", "f", "![ARGS]", "{}"}), "f({})");
  EXPECT_EQ(with_control(ToolFormat::hermes, {"!<think>", "Hm", "!</think>", "Hi"}), "R[Hm]C[Hi]");
  EXPECT_EQ(with_control(ToolFormat::deepseek,
                         {"!<｜tool▁calls▁begin｜>", "!<｜tool▁call▁begin｜>", "function",
                          "!<｜tool▁sep｜>", "f\n```json\n{}\n```", "!<｜tool▁call▁end｜>",
                          "!<｜tool▁calls▁end｜>", "!<｜end▁of▁sentence｜>"}),
            "f({})");
  EXPECT_EQ(
      with_control(ToolFormat::glm, {"!<tool_call>", "f\n", "!<arg_key>", "n", "!</arg_key>", "\n",
                                     "!<arg_value>", "1", "!</arg_value>", "\n", "!</tool_call>"}),
      "f({\"n\": 1})");
  EXPECT_EQ(with_control(ToolFormat::llama3, {"!<|python_tag|>", "print(1)", "!<|eom_id|>"}),
            "C[<|python_tag|>print(1)]");
  EXPECT_EQ(with_control(ToolFormat::mistral, {"![TOOL_CALLS]", "[]"}, false), "C[[TOOL_CALLS][]]");
}

// A control token is never part of a string, whatever its text.
TEST(OutputParser, AControlTokenEndsBrokenArguments) {
  EXPECT_EQ(with_control(ToolFormat::hermes,
                         {"!<tool_call>", "{\"name\": \"f\", \"arguments\": {\"text\": \"a",
                          "!</tool_call>", "Hi"}),
            "f({\"text\": \"a~C[Hi]");
  EXPECT_EQ(with_control(ToolFormat::mistral,
                         {"![TOOL_CALLS]", "f[ARGS]{\"text\": \"a", "![TOOL_CALLS]", "g[ARGS]{}"}),
            "f({\"text\": \"a~g({})");
  EXPECT_EQ(with_control(ToolFormat::qwen_xml,
                         {"!<tool_call>", "<function=f><parameter=n>12", "!</tool_call>", "Hi"}),
            "f({\"n\": 12~C[Hi]");
}

TEST(OutputParser, HoldsABoundedAmount) {
  const std::string big(CallReader::kMaxHeldBytes, 'x');
  const std::string last =
      "<tool_call>{\"arguments\": {\"text\": \"" + big + "\"}, \"name\": \"f\"}</tool_call>";
  EXPECT_EQ(joined(parsed(rules_for(ToolFormat::hermes), last)), "C[" + last + "]");
  const std::string first =
      "<tool_call>{\"name\": \"f\", \"arguments\": {\"text\": \"" + big + "\"}}</tool_call>";
  EXPECT_EQ(joined(parsed(rules_for(ToolFormat::hermes), first)), "f({\"text\": \"" + big + "\"})");
  const std::string array =
      "<tool_call><function=f><parameter=list>[" + big + "]</parameter></function></tool_call>";
  EXPECT_EQ(joined(parsed(rules_for(ToolFormat::qwen_xml), array)),
            "f({\"list\": \"[" + big + "]\"})");
  const std::string space(1000, ' ');
  EXPECT_EQ(joined(parsed(rules_for(ToolFormat::hermes), space + "a")), "C[" + space + "a]");
}

}  // namespace
}  // namespace millrace
