#include "serve/request_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>

#include "base/utf8.h"

namespace millrace::serve {
namespace {

constexpr size_t kMaxNameBytes = 1024;
constexpr int64_t kMostTokens = int64_t{1} << 40;  // far above any context, far below an overflow

// The headers by which clients say which conversation this is, the surest first.
constexpr std::array<std::string_view, 8> kSessionHeaders = {
    "x-claude-code-session-id",    // Claude Code
    "thread-id",                   // Codex
    "session-id",                  // Codex
    "session_id",                  // Codex, older
    "x-session-id",                // OpenCode, vLLM
    "x-conversation-id",           // llama.cpp
    "x-dynamo-session-id",         // Dynamo
    "x-override-conversation-id",  // SGLang
};

std::string name(const Field& field) {
  std::string out = field.text();
  if (out.size() > kMaxNameBytes)
    field.fail(fmt::format("has {} bytes; at most {} are taken", out.size(), kMaxNameBytes));
  return out;
}

std::string cut(std::string_view text) {
  return std::string(text.substr(0, kMaxNameBytes));
}

// The first of these fields that says something.
std::string named(const Field& body, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const Field field = body[key]; field.is_string() && field.json() != "")
      return cut(field.text());
  return {};
}

// Which conversation goes on. A user may have several at once: that is no name of one.
std::string conversation_of(const Field& body, const HeaderOf& header) {
  for (const std::string_view name : kSessionHeaders)
    if (const std::string_view value = header(name); !value.empty()) return cut(value);
  return named(body, {"session_id", "prompt_cache_key"});
}

// Who is being answered: fields say it less surely than headers, those of a user least.
std::string session_of(const Field& body, const HeaderOf& header) {
  if (std::string known = conversation_of(body, header); !known.empty()) return known;
  if (std::string user = named(body, {"safety_identifier", "user"}); !user.empty()) return user;
  const Field metadata = body["metadata"];
  if (!metadata.is_object() || !metadata["user_id"].is_string()) return {};
  return cut(metadata["user_id"].text());
}

int priority_of(const Field& body, const HeaderOf& header) {
  constexpr int kMost = 1'000'000;
  const std::string_view word = header("x-override-priority");
  int value = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (!word.empty() && problem == std::errc() && end == word.data() + word.size())
    return std::clamp(value, -kMost, kMost);
  return static_cast<int>(body["priority"].integer(-kMost, kMost).value_or(0));
}

// A breakpoint of Anthropic's cache; it is kept for five minutes where it does not say how long.
double breakpoint_s(const Json& holder) {
  constexpr double kPlain = 300;
  if (!holder.is_object() || !holder.contains("cache_control")) return 0;
  const Json& control = holder["cache_control"];
  if (!control.is_object()) return 0;
  const bool says = control.contains("ttl") && control["ttl"].is_string();
  return says ? read_time(control["ttl"].get_ref<const std::string&>()) : kPlain;
}

// Of the last breakpoint: the one that all of the context is before.
double last_breakpoint_s(const Json& body) {
  double out = 0;
  const auto look = [&](const Json& holder) {
    if (const double seconds = breakpoint_s(holder); seconds > 0) out = seconds;
  };
  const auto look_in = [&](const Json& blocks) {
    if (blocks.is_array())
      for (const Json& block : blocks) look(block);
  };
  for (const char* key : {"tools", "system"})
    if (body.contains(key)) look_in(body[key]);
  if (body.contains("messages") && body["messages"].is_array())
    for (const Json& message : body["messages"])
      if (message.is_object() && message.contains("content")) look_in(message["content"]);
  look(body);
  return out;
}

// What the client says about coming back: OpenAI's words, or Anthropic's.
double ttl_of(const Field& body) {
  const auto said = [](const Field& field) {
    return field.is_string() ? read_time(field.json().get_ref<const std::string&>()) : 0;
  };
  const Field options = body["prompt_cache_options"];
  const double asked = options.is_object() ? said(options["ttl"]) : 0;
  const double kept = std::max(asked, said(body["prompt_cache_retention"]));
  return kept > 0 || !body.is_object() ? kept : last_breakpoint_s(body.json());
}

void read_sampling(const Field& body, AskedSampling& out) {
  out.temperature = body["temperature"].real(0, 100);
  out.top_p = body["top_p"].real(0, 1);
  out.min_p = body["min_p"].real(0, 1);
  if (const auto k = body["top_k"].integer(-1, INT32_MAX))
    out.top_k = std::max(0, static_cast<int>(*k));  // vLLM's -1 is off as well
  out.presence_penalty = body["presence_penalty"].real(-100, 100);
  out.frequency_penalty = body["frequency_penalty"].real(-100, 100);
  for (const char* key : {"repetition_penalty", "repeat_penalty"})  // vLLM's name and llama.cpp's
    if (const auto penalty = body[key].real(1e-3, 1e3)) out.repeat_penalty = penalty;
  if (const Field seed = body["seed"]; seed.given() && seed.json().is_number_unsigned())
    out.seed = seed.json().get<uint64_t>();
  else if (const auto signed_seed = seed.integer(INT64_MIN, INT64_MAX);
           signed_seed && *signed_seed != -1)  // llama.cpp's -1 is "any"
    out.seed = static_cast<uint64_t>(*signed_seed);
}

// The names that vLLM, Qwen's own server and OpenRouter gave to the same thing.
void read_thinking_extras(const Field& body, ApiRequest& out) {
  const Field variables = body["chat_template_kwargs"];
  if (variables.given() && !variables.is_object()) variables.fail_type("an object");
  if (variables.is_object()) {
    out.chat.variables = variables.json();
    if (const Field thinks = variables["enable_thinking"]; thinks.json().is_boolean())
      out.reasoning.enabled = thinks.boolean();
  }
  if (const auto enabled = body["enable_thinking"].boolean()) out.reasoning.enabled = enabled;
  if (const auto budget = body["thinking_budget"].integer(-1, kMostTokens))
    out.reasoning.budget_tokens = *budget;
  read_thinking(body["thinking"], out.reasoning);
}

}  // namespace

void read_common(const Field& body, const HeaderOf& header, ApiRequest& out) {
  out.model = name(body["model"]);
  out.stream = body["stream"].flag();
  read_sampling(body, out.sampling);
  read_thinking_extras(body, out);
  out.ignore_end = body["ignore_eos"].flag();
  out.wants_progress = body["return_progress"].flag();
  out.session = session_of(body, header);
  out.conversation = conversation_of(body, header);
  // Its sub-agents have the same session.
  if (const std::string_view agent = header("x-claude-code-agent-id"); !agent.empty())
    out.conversation += '/' + cut(agent);
  out.ttl_s = ttl_of(body);
  out.salt = name(body["cache_salt"]);
  const std::string retention = name(body["prompt_cache_retention"]);
  out.in_memory = retention == "in-memory" || retention == "in_memory";
  out.priority = priority_of(body, header);
}

double read_time(std::string_view text) {
  constexpr double kWeek = 7 * 86400;
  int64_t n = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (problem != std::errc() || n < 0 || end + 1 != text.data() + text.size()) return 0;
  const double unit = *end == 's'   ? 1
                      : *end == 'm' ? 60
                      : *end == 'h' ? 3600
                      : *end == 'd' ? 86400
                                    : 0;
  return std::min(static_cast<double>(n) * unit, kWeek);
}

int64_t read_max_tokens(const Field& field) {
  return field.integer(1, INT64_MAX).value_or(-1);
}

std::vector<std::string> read_stops(const Field& field) {
  std::vector<std::string> out;
  const auto add = [&](const Field& stop) {
    std::string text = stop.text();
    if (text.size() > kMaxStopBytes)
      stop.fail(fmt::format("has {} bytes; at most {} are taken", text.size(), kMaxStopBytes));
    if (!text.empty()) out.push_back(std::move(text));
  };
  if (field.is_string()) {
    add(field);
    return out;
  }
  if (field.is_array() && field.json().size() > kMaxStops) {
    field.fail(fmt::format("has {} strings; at most {} are taken", field.json().size(), kMaxStops));
    return out;
  }
  for (const Field& stop : field.elements()) add(stop);
  return out;
}

void read_biases(const Field& field, AskedSampling& out) {
  if (!field.given()) return;
  if (!field.is_object()) return field.fail_type("an object of token ids and numbers");
  if (field.json().size() > kMaxBiases)
    return field.fail(
        fmt::format("has {} tokens; at most {} are taken", field.json().size(), kMaxBiases));
  for (const auto& [id, value] : field.json().items()) {
    int32_t token = -1;
    const auto [end, problem] = std::from_chars(id.data(), id.data() + id.size(), token);
    if (problem != std::errc() || end != id.data() + id.size() || token < 0)
      return field.fail(fmt::format("has the key '{}', which is no token id", printable(id, 40)));
    const double bias = value.is_number() ? value.template get<double>() : 1e9;
    if (bias >= -100 && bias <= 100)
      out.biases.push_back({token, static_cast<float>(bias)});
    else
      field[id].real(-100, 100);  // says what is wrong; looking a key up takes long among many
  }
}

void read_effort(const Field& field, Reasoning& out) {
  constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium",
                                                        "high", "xhigh",   "max"};
  const std::string effort = field.choice(kEfforts);
  if (effort.empty()) return;
  if (effort == "none")
    out.enabled = false;
  else
    out.effort = effort == "xhigh" || effort == "max" ? "high" : effort;
}

void read_thinking(const Field& field, Reasoning& out) {
  if (!field.given()) return;
  if (field.json().is_boolean()) {
    out.enabled = field.boolean();
    return;
  }
  constexpr std::array<std::string_view, 4> kTypes = {"enabled", "disabled", "adaptive", "auto"};
  const std::string type = field["type"].required().choice(kTypes);
  if (type == "enabled") out.enabled = true;
  if (type == "disabled") out.enabled = false;
  if (const auto budget = field["budget_tokens"].integer(0, kMostTokens))
    out.budget_tokens = *budget;
}

ResponseFormat read_format(const Field& field, const Field& holder) {
  using Kind = ResponseFormat::Kind;
  constexpr std::array<std::string_view, 3> kTypes = {"text", "json_object", "json_schema"};
  if (!field.given()) return {};
  const std::string type = field["type"].required().choice(kTypes);
  if (type != "json_schema")
    return {.kind = type == "json_object" ? Kind::json_object : Kind::text};
  const Field schema = holder["schema"];
  if (schema.required().given() && !schema.is_object()) schema.fail_type("an object");
  return {.kind = Kind::json_schema, .schema = schema.json(), .strict = holder["strict"].flag()};
}

ApiResult<ApiRequest> finish(ApiRequest request, Reading reading) {
  if (!reading.ok()) return std::move(reading.error);
  request.warnings = std::move(reading.warnings);
  return request;
}

}  // namespace millrace::serve
