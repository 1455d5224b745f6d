// A conversation in OpenAI's shape, rendered to the prompt its model was trained on. Templates are
// rendered as the `transformers` package does, with these conveniences around them:
// - Content given as parts ([{"type": "text", ...}]) becomes one string, parts joined by newlines,
//   where the template cannot take parts; and a string becomes a part where it takes only those.
// - A tool call's arguments arrive as a string of JSON; templates are written for the object. A
//   string that is no JSON object stays one, or is wrapped where the template would fail on it.
// - Content that is null beside tool calls becomes an empty string; where the template shows calls
//   only without content, content is left out for them.
// - reasoning_content, reasoning and thinking name the same thing.
// - Without tools, `tools` is none; for a template that fails on that it is undefined.
// What a template can take is found out by rendering a few small conversations when it is parsed,
// all of them within a small part of what one render may take.
//
// The prompt comes in pieces that say what came from the template. Text of messages, tools and
// variables is input, and so is whatever was computed from it. Not input: a message's role where it
// is one of the known ones, because some templates make a control token of it.
#pragma once

#include <atomic>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/template/template.h"

namespace millrace {

struct ChatInput {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  nlohmann::ordered_json tools;      // an array, or null
  nlohmann::ordered_json variables;  // an object of what else templates ask for (enable_thinking,
                                     // documents, ...), or null
  bool add_generation_prompt = true;
  // Local time, for templates that print the date. Without it strftime_now is undefined and they
  // use what they have instead; needs_date() tells those that have nothing.
  std::optional<std::tm> now = {};
};

class ChatTemplate {
 public:
  using Rendered = jinja::Rendered;

  // An empty source stands for a model that brings none: ChatML, which most understand. The special
  // tokens are what templates call bos_token, eos_token and the like.
  static Result<ChatTemplate> parse(std::string_view source,
                                    std::map<std::string, std::string> special_tokens = {},
                                    const jinja::Limits& limits = {});

  // Ends with Code::cancelled soon after `stop` becomes true.
  Result<Rendered> render(const ChatInput& input, const std::atomic<bool>* stop = nullptr) const;

  bool is_builtin() const { return is_builtin_; }
  // It fails without a date: the first of January 2025 where it gets none.
  bool needs_date() const { return takes_.needs_date; }

 private:
  // What the template renders, as probing it showed.
  struct Takes {
    bool text = true, parts = false;
    bool object_arguments = true, text_arguments = false;
    bool text_with_calls = true;  // else a message shows its calls only without content (DeepSeek)
    bool none_for_tools = true;
    bool needs_date = false;
  };
  explicit ChatTemplate(jinja::Template parsed) : template_(std::move(parsed)) {}
  void probe();
  bool probe_content();
  void probe_arguments();
  bool renders(const ChatInput& input, std::string_view wanted,
               std::string_view unwanted = {}) const;
  Result<Rendered> render_as_is(const ChatInput& input, const jinja::Limits& limits) const;

  Status adapt_message(nlohmann::ordered_json& message, size_t index) const;
  Status adapt_content(nlohmann::ordered_json& content, size_t index) const;
  void adapt_arguments(nlohmann::ordered_json& call) const;

  jinja::Template template_;
  std::map<std::string, std::string> special_tokens_;
  jinja::Limits limits_;
  Takes takes_;
  bool is_builtin_ = false;
};

}  // namespace millrace
