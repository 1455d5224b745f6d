#include "text/template/chat_template.h"

#include <algorithm>
#include <array>

#include "base/json_text.h"
#include "base/utf8.h"
#include "text/template/json.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kChatMl =
    "{%- for message in messages -%}\n"
    "{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') + '<|im_end|>\\n' -}}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}\n";

constexpr std::array<std::string_view, 8> kRoles = {"system", "developer", "user",  "assistant",
                                                    "tool",   "function",  "model", "ipython"};

constexpr std::string_view kProbeText = "probe text";

// For each of the four to eight conversations of probe(): ten times what the templates we know
// take, and a hundredth of what a render may.
constexpr jinja::Limits kProbeLimits = {
    .steps = 50'000, .output_bytes = 1 << 20, .memory_bytes = 8 << 20};

// What a conversation adds to the limit of steps: some templates (gpt-oss, Command R) look through
// the messages again for each message, which takes up to 8 steps a pair.
int64_t steps_for(size_t n_messages) {
  constexpr int64_t kMost = 6'000'000;  // with the limit itself, half a second
  const auto n = static_cast<int64_t>(std::min<size_t>(n_messages, 10'000));
  return std::min(8 * n * n, kMost);
}

bool is_known_role(const Json& role) {
  return role.is_string() && std::find(kRoles.begin(), kRoles.end(),
                                       role.get_ref<const std::string&>()) != kRoles.end();
}

Result<jinja::Value> message_value(jinja::Interpreter& in, const Json& message) {
  std::vector<jinja::Dict::Entry> entries;
  for (const auto& [key, json] : message.items()) {
    MILLRACE_ASSIGN(jinja::Value name, in.text(key, true));
    MILLRACE_ASSIGN(jinja::Value value,
                    jinja::from_json(in, json, key == "role" && is_known_role(json)));
    entries.emplace_back(std::move(name), std::move(value));
  }
  return in.dict(std::move(entries));
}

Result<jinja::Value> messages_value(jinja::Interpreter& in, const Json& messages) {
  std::vector<jinja::Value> out;
  for (const Json& message : messages) {
    MILLRACE_ASSIGN(jinja::Value value, message_value(in, message));
    out.push_back(std::move(value));
  }
  return in.list(jinja::ListKind::list, std::move(out));
}

Status check_shape(const ChatInput& input) {
  const auto fail = [](std::string_view what) { return error(Code::invalid_argument, "{}", what); };
  if (!input.messages.is_array()) return fail("messages must be an array");
  for (size_t i = 0; i < input.messages.size(); ++i)
    if (!input.messages[i].is_object())
      return error(Code::invalid_argument, "messages[{}] must be an object", i);
  if (!input.tools.is_null() && !input.tools.is_array()) return fail("tools must be an array");
  if (!input.variables.is_null() && !input.variables.is_object())
    return fail("the template's variables must be an object");
  return {};
}

// A Wednesday.
std::tm first_of_2025() {
  std::tm out{};
  out.tm_year = 125;
  out.tm_mday = 1;
  out.tm_wday = 3;
  return out;
}

// reasoning_content is what most templates read, thinking what gpt-oss does.
void adapt_reasoning(Json& message) {
  Json reasoning;
  for (const char* key : {"reasoning_content", "thinking", "reasoning"})
    if (reasoning.is_null() && message.contains(key)) reasoning = message[key];
  if (reasoning.is_null()) return;
  message["reasoning_content"] = reasoning;
  if (!message.contains("thinking")) message["thinking"] = std::move(reasoning);
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source,
                                         std::map<std::string, std::string> special_tokens,
                                         const jinja::Limits& limits) {
  const bool builtin = source.empty();
  MILLRACE_ASSIGN(auto parsed, jinja::Template::parse(builtin ? kChatMl : source));
  ChatTemplate out(std::move(parsed));
  out.special_tokens_ = std::move(special_tokens);
  out.limits_ = limits;
  out.is_builtin_ = builtin;
  out.probe();
  return out;
}

bool ChatTemplate::renders(const ChatInput& input, std::string_view wanted,
                           std::string_view unwanted) const {
  jinja::Limits limits = kProbeLimits;
  limits.steps = std::min(limits.steps, limits_.steps);
  const auto rendered = render_as_is(input, limits);
  if (!rendered.ok()) return false;
  const std::string text = rendered.value().text();
  return text.find(wanted) != std::string::npos &&
         (unwanted.empty() || text.find(unwanted) == std::string::npos);
}

void ChatTemplate::probe() {
  for (const bool needs_date : {false, true})
    for (const bool none_for_tools : {true, false}) {
      takes_ = {};
      takes_.needs_date = needs_date;
      takes_.none_for_tools = none_for_tools;
      if (probe_content()) return probe_arguments();
    }
  takes_ = {};
  takes_.needs_date = true;
  probe_arguments();
}

// Whether the template renders a question at all.
bool ChatTemplate::probe_content() {
  constexpr std::string_view kOther = "probe that is no text";
  ChatInput said;
  said.messages = Json::array({Json{{"role", "user"}, {"content", kProbeText}}});
  takes_.text = renders(said, kProbeText);
  // A template that prints the part whole would show its other member as well.
  said.messages[0]["content"] =
      Json::array({Json{{"type", "text"}, {"text", kProbeText}, {"note", kOther}}});
  takes_.parts = renders(said, kProbeText, kOther);
  const bool any = takes_.text || takes_.parts;
  if (!takes_.parts) takes_.text = true;
  return any;
}

void ChatTemplate::probe_arguments() {
  const std::string arguments = R"({"probe": "value"})";
  ChatInput called;
  const Json question = {{"role", "user"}, {"content", kProbeText}};
  const Json function = {{"name", "f"}, {"arguments", Json::parse(arguments)}};
  const Json call = {{"id", "callprobe"}, {"type", "function"}, {"function", function}};
  const Json answer = {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}};
  const Json result = {
      {"role", "tool"}, {"tool_call_id", "callprobe"}, {"name", "f"}, {"content", kProbeText}};
  called.messages = Json::array({question, answer, result});
  const Json declared = {{"name", "f"}, {"description", ""}, {"parameters", Json::object()}};
  called.tools = Json::array({Json{{"type", "function"}, {"function", declared}}});
  const auto probe_both = [&] {
    called.messages[1]["tool_calls"][0]["function"]["arguments"] = Json::parse(arguments);
    takes_.object_arguments = renders(called, "value");
    called.messages[1]["tool_calls"][0]["function"]["arguments"] = arguments;
    takes_.text_arguments = renders(called, arguments);
    return takes_.object_arguments || takes_.text_arguments;
  };
  if (!probe_both()) {
    called.messages[1]["content"] = nullptr;
    takes_.text_with_calls = !probe_both();
  }
  if (!takes_.text_arguments) takes_.object_arguments = true;
}

// Text parts as one string; an error for any other, which the template could not show.
Status ChatTemplate::adapt_content(Json& content, size_t index) const {
  if (content.is_string() && !takes_.text) {
    content = Json::array({Json{{"type", "text"}, {"text", content}}});
    return {};
  }
  if (!content.is_array() || takes_.parts) return {};
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const Json& part = content[i];
    const bool is_text = part.is_object() && part.contains("text") && part["text"].is_string();
    if (!is_text && !part.is_string()) {
      const bool named = part.is_object() && part.contains("type") && part["type"].is_string();
      const std::string type = named ? part["type"].get<std::string>() : "unknown";
      return error(Code::unsupported,
                   "messages[{}].content[{}] is of type {}: this model's template takes only text",
                   index, i, printable(type, 40));
    }
    if (i > 0) text += '\n';
    text += (is_text ? part["text"] : part).get_ref<const std::string&>();
  }
  content = std::move(text);
  return {};
}

void ChatTemplate::adapt_arguments(Json& call) const {
  Json* holder = call.is_object() && call.contains("function") ? &call["function"] : &call;
  if (!holder->is_object() || !holder->contains("arguments")) return;
  Json& arguments = (*holder)["arguments"];
  if (arguments.is_null()) arguments = Json::object();
  if (arguments.is_string() && takes_.object_arguments) {
    auto parsed = jinja::parse_ordered_json(arguments.get_ref<const std::string&>());
    if (parsed && parsed->is_object()) arguments = std::move(*parsed);
  }
  if (!arguments.is_string() && !takes_.object_arguments) arguments = json_text(arguments);
  if (!arguments.is_object() && !takes_.text_arguments) arguments = Json{{"arguments", arguments}};
}

Status ChatTemplate::adapt_message(Json& message, size_t index) const {
  if (message.contains("content")) MILLRACE_TRY(adapt_content(message["content"], index));
  adapt_reasoning(message);
  if (!message.contains("tool_calls") || !message["tool_calls"].is_array()) return {};
  for (Json& call : message["tool_calls"]) adapt_arguments(call);
  if (message["tool_calls"].empty()) return {};
  // Clients send null or nothing, which templates that look into the content fail on.
  Json& content = message["content"];
  if (!takes_.text_with_calls)
    content = nullptr;
  else if (content.is_null())
    content = "";
  return {};
}

Result<ChatTemplate::Rendered> ChatTemplate::render(const ChatInput& input,
                                                    const std::atomic<bool>* stop) const {
  MILLRACE_TRY(check_shape(input));
  ChatInput adapted = input;
  for (size_t i = 0; i < adapted.messages.size(); ++i)
    MILLRACE_TRY(adapt_message(adapted.messages[i], i));
  if (adapted.tools.is_array() && adapted.tools.empty()) adapted.tools = nullptr;
  jinja::Limits limits = limits_;
  limits.steps += steps_for(adapted.messages.size());
  limits.stop = stop;
  return render_as_is(adapted, limits);
}

Result<ChatTemplate::Rendered> ChatTemplate::render_as_is(const ChatInput& input,
                                                          const jinja::Limits& limits) const {
  const std::tm now = input.now.value_or(first_of_2025());
  return template_.render(limits, now, [&](jinja::Interpreter& in) -> Status {
    if (!input.now && !takes_.needs_date) in.set_global("strftime_now", jinja::Value());
    in.set_global("documents", jinja::None{});
    for (const auto& [name, token] : special_tokens_) {
      MILLRACE_ASSIGN(jinja::Value value, in.text(token, false));
      in.set_global(name, std::move(value));
    }
    for (const auto& [name, json] : input.variables.items()) {
      MILLRACE_ASSIGN(jinja::Value value, jinja::from_json(in, json));
      in.set_global(name, std::move(value));
    }
    MILLRACE_ASSIGN(jinja::Value messages, messages_value(in, input.messages));
    MILLRACE_ASSIGN(jinja::Value tools, jinja::from_json(in, input.tools));
    in.set_global("messages", std::move(messages));
    if (!input.tools.is_null() || takes_.none_for_tools) in.set_global("tools", std::move(tools));
    in.set_global("add_generation_prompt", jinja::Value(input.add_generation_prompt));
    return {};
  });
}

}  // namespace millrace
