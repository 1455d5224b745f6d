#include "text/output/messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/json_text.h"
#include "text/output/output_test_support.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

const Json& tools() {
  static const Json kTools = Json::parse(R"([
    {"type": "function", "function": {"name": "get_weather", "description": "The weather somewhere",
      "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "where"},
        "days": {"type": "integer", "description": "how many"},
        "hourly": {"type": "boolean", "description": "in detail"},
        "units": {"type": "object", "description": "to use"},
        "fields": {"type": "array", "description": "to show"}}}}},
    {"type": "function", "function": {"name": "stop", "description": "Ends it",
      "parameters": {"type": "object", "properties": {}}}}])");
  return kTools;
}

Json message(const char* role, const Json& content) {
  return {{"role", role}, {"content", content}};
}

Json call(const char* name, const Json& arguments, const char* id = "call00001") {
  return {
      {"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
}

Json calling(const Json& content, const Json& calls) {
  Json out = message("assistant", content);
  out["tool_calls"] = calls;
  return out;
}

Json result(const char* content, const char* id = "call00001") {
  Json out = message("tool", content);
  out["tool_call_id"] = id;
  out["name"] = "get_weather";
  return out;
}

constexpr OutputFormat kAllAsText = {.tools = ToolFormat::hermes,
                                     .reasoning = ReasoningFormat::none,
                                     .needs_instructions = true,
                                     .needs_written_calls = true};

TEST(ToolsAsText, EndTheSystemMessage) {
  ChatInput input;
  input.messages = Json::array({message("system", "Be brief."), message("user", "Hi")});
  input.tools = tools();
  const ChatInput out = with_tools_as_text(input, kAllAsText);
  EXPECT_TRUE(out.tools.is_null());
  EXPECT_EQ(out.messages[0]["content"], "Be brief.\n\n" + hermes_instructions(tools()));
  EXPECT_EQ(out.messages[1], input.messages[1]);
  input.messages.erase(0);
  EXPECT_EQ(with_tools_as_text(input, kAllAsText).messages[0],
            message("system", hermes_instructions(tools())));
  OutputFormat no_system = kAllAsText;
  no_system.has_system_role = false;
  const ChatInput to_user = with_tools_as_text(input, no_system);
  ASSERT_EQ(to_user.messages.size(), 1u);
  EXPECT_EQ(to_user.messages[0]["content"], hermes_instructions(tools()) + "\n\nHi");
  input.messages[0]["content"] = Json::array({Json{{"type", "text"}, {"text", "Hi"}}});
  const Json parts = with_tools_as_text(input, no_system).messages[0]["content"];
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0]["text"], hermes_instructions(tools()));
}

TEST(ToolsAsText, NameEveryToolAndShowACall) {
  const std::string text = hermes_instructions(tools());
  for (const char* wanted : {"get_weather", "\"stop\"", "<tool_response>",
                             "<tool_call>\n{\"name\": \"FUNCTION\", \"arguments\": "
                             "{\"PARAMETER\":\"VALUE\"}}\n</tool_call>"})
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted;
  EXPECT_NE(tool_instructions(ToolFormat::deepseek, tools()).find("<｜tool▁sep｜>FUNCTION"),
            std::string::npos);
}

TEST(ToolsAsText, CallsAndResultsBecomeText) {
  ChatInput input;
  input.messages = Json::array(
      {message("user", "Hi"),
       calling("Well.", Json::array({call("f", "{\"a\":  1}"), call("g", Json{{"b", 2}})})),
       result("one"), result("two"), message("user", "And?"), calling(nullptr, Json::array()),
       calling(nullptr, Json::array({call("h", "{oops")})), result("three")});
  const Json out = with_tools_as_text(input, kAllAsText).messages;
  ASSERT_EQ(out.size(), 6u);
  EXPECT_EQ(out[1],
            message("assistant",
                    "Well.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":  1}}\n"
                    "</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {\"b\":2}}\n"
                    "</tool_call>"));
  EXPECT_EQ(out[2], message("user",
                            "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n"
                            "</tool_response>\n\nAnd?"));
  EXPECT_EQ(out[3], message("assistant", nullptr));
  EXPECT_EQ(out[4], message("assistant",
                            "<tool_call>\n{\"name\": \"h\", \"arguments\": {oops}\n</tool_call>"));
  EXPECT_EQ(out[5], message("user", "<tool_response>\nthree\n</tool_response>"));
}

TEST(ToolsAsText, LeavesAConversationToATemplateThatDoesItAll) {
  ChatInput input;
  input.messages =
      Json::array({message("user", "Hi"), calling("", Json::array({call("f", "{}")}))});
  input.tools = tools();
  const ChatInput out = with_tools_as_text(input, {.tools = ToolFormat::hermes});
  EXPECT_EQ(out.messages, input.messages);
  EXPECT_EQ(out.tools, input.tools);
}

// The calls, with their arguments as JSON.
std::vector<std::pair<std::string, Json>> calls_in(const std::vector<OutputEvent>& events) {
  std::vector<std::pair<std::string, Json>> calls;
  std::string arguments;
  for (const OutputEvent& event : events) {
    if (event.kind == OutputEvent::Kind::call_begin) {
      calls.emplace_back(event.text, nullptr);
      arguments.clear();
    }
    if (event.kind == OutputEvent::Kind::call_arguments) arguments += event.text;
    if (event.kind != OutputEvent::Kind::call_end) continue;
    EXPECT_FALSE(event.is_truncated);
    EXPECT_TRUE(Json::accept(arguments)) << arguments;
    calls.back().second = Json::parse(arguments, nullptr, false);
  }
  return calls;
}

std::string content_in(const std::vector<OutputEvent>& events) {
  std::string content;
  for (const OutputEvent& event : events)
    if (event.kind == OutputEvent::Kind::content) content += event.text;
  return content;
}

Json hard_arguments() {
  return Json::parse(
      R"({"place": "Zürich \"</tool_call>\" {[<tool_call>\\ \n</x> 漢🙂", "days": -3,
    "hourly": true, "units": {"a": {"b": ["}", null]}}, "fields": ["x", 1.5, {}]})");
}

// How calls are spelled by call_syntax() is how they are read.
TEST(ToolsAsText, IsReadBackInEveryFormat) {
  for (int i = 1; i < kToolFormats; ++i) {
    OutputRules rules;
    rules.format.tools = static_cast<ToolFormat>(i);
    rules.tools = ToolSet(tools());
    const Json calls = Json::array(
        {call("get_weather", hard_arguments()), call("stop", Json::object()), call("stop", "")});
    const auto events = parsed(rules, written_calls(rules.format.tools, calls));
    const std::vector<std::pair<std::string, Json>> expected = {
        {"get_weather", hard_arguments()}, {"stop", Json::object()}, {"stop", Json::object()}};
    EXPECT_EQ(calls_in(events), expected) << name_of(rules.format.tools);
    EXPECT_EQ(content_in(events), "") << name_of(rules.format.tools);
  }
}

struct RealTemplate {
  std::string name;
  OutputFormat format;
  ChatTemplate chat;
};

void for_real_templates(const std::function<void(const RealTemplate&)>& check) {
  const char* data = std::getenv("MILLRACE_TEST_DATA");
  const auto folder = std::filesystem::path(data == nullptr ? "" : data) / "chat-templates";
  if (data == nullptr || !std::filesystem::exists(folder))
    GTEST_SKIP() << "MILLRACE_TEST_DATA names no folder with chat-templates/*.jinja";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(file.path());
    const std::string source(std::istreambuf_iterator<char>(in), {});
    auto parsed = ChatTemplate::parse(source, {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    ASSERT_TRUE(parsed.ok()) << file.path();
    check({file.path().stem(), output_format_of(*parsed, source), std::move(parsed.value())});
  }
}

Result<std::string> rendered(const RealTemplate& real, const Json& messages, bool with_prompt) {
  ChatInput input;
  input.messages = messages;
  input.tools = tools();
  input.add_generation_prompt = with_prompt;
  auto out = real.chat.render(with_tools_as_text(input, real.format));
  if (!out.ok()) return out.status();
  return out.value().text();
}

// What a template renders for an assistant's message, after the prompt that asked for it.
std::string answer_of(const RealTemplate& real, const Json& answer) {
  const Json question = message("user", "What now?");
  auto prompt = rendered(real, Json::array({question}), true);
  auto whole = rendered(real, Json::array({question, answer}), false);
  EXPECT_TRUE(prompt.ok() && whole.ok()) << real.name << whole.status().message();
  if (!prompt.ok() || !whole.ok()) return "";
  // Some open reasoning in the prompt that they leave out of answers: from where the two part.
  const std::string_view open = markers_of(real.format.reasoning).open;
  const size_t at = open.empty() ? std::string::npos : prompt->rfind(open);
  if (at != std::string::npos && prompt->size() - at < 40) prompt->resize(at);
  const auto parts = std::mismatch(prompt->begin(), prompt->end(), whole->begin(), whole->end());
  return {parts.second, whole->end()};
}

TEST(ToolsAsText, TryingRealTemplatesOutShowsWhatTheyLeaveOut) {
  for_real_templates([](const RealTemplate& real) {
    const auto is = [&](std::string_view part) {
      return real.name.find(part) != std::string::npos;
    };
    const bool knows_none = is("SmolLM3") || is("gemma") || is("Phi");
    EXPECT_EQ(real.format.needs_instructions, knows_none || is("deepseek")) << real.name;
    EXPECT_EQ(real.format.needs_written_calls, knows_none || is("granite") || is("Kimi"))
        << real.name;
    EXPECT_EQ(real.format.has_system_role, !is("gemma")) << real.name;
  });
}

TEST(ToolsAsText, CallsOfRealTemplatesAreReadBack) {
  for_real_templates([](const RealTemplate& real) {
    if (real.format.tools == ToolFormat::none) return;
    const bool is_single = real.format.tools == ToolFormat::llama3;
    OutputRules rules;
    rules.format = real.format;
    rules.tools = ToolSet(tools());
    Json calls = Json::array({call("get_weather", json_text(hard_arguments()))});
    std::vector<std::pair<std::string, Json>> expected = {{"get_weather", hard_arguments()}};
    if (!is_single) {
      calls.push_back(call("stop", "{}", "call00002"));
      expected.emplace_back("stop", Json::object());
    }
    const std::string text = answer_of(real, calling("", calls));
    EXPECT_EQ(calls_in(parsed(rules, text)), expected) << real.name << "\n" << text;
  });
}

// A model's mistake of an earlier turn must not end the session.
TEST(ToolsAsText, BrokenArgumentsInAHistoryRender) {
  for_real_templates([](const RealTemplate& real) {
    for (const Json& arguments :
         {Json("{\"place\": "), Json("oops"), Json(""), Json("[1]"), Json("null"), Json("5"),
          Json("{\"a\": \xff}"), Json("\"{}\""), Json(nullptr), Json(7), Json::array({1}),
          Json("{\"a\": 1}{\"b\": 2}"), Json("{'a': None}")}) {
      const Json history = Json::array(
          {message("user", "What now?"),
           calling(nullptr, Json::array({call("get_weather", arguments)})), result("Fog.")});
      const auto out = rendered(real, history, true);
      EXPECT_TRUE(out.ok()) << real.name << ": " << json_text(arguments) << "\n"
                            << out.status().message();
    }
  });
}

}  // namespace
}  // namespace millrace
