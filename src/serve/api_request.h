// One request for an answer, in whatever dialect it came: what the three APIs have in common. A
// dialect fills it from JSON; what only that dialect has (how an event is spelled) stays there.
// Everything in it was checked for type and range; nothing in it was looked up in a model yet.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/sampler.h"
#include "text/template/chat_template.h"

namespace millrace::serve {

using Json = nlohmann::ordered_json;

struct ToolChoice {
  enum class Kind : unsigned char { automatic, none, required, named };
  Kind kind = Kind::automatic;
  std::string name = {};  // of the one that must be called
};

struct ResponseFormat {
  enum class Kind : unsigned char { text, json_object, json_schema };
  Kind kind = Kind::text;
  Json schema = {};
  bool strict = false;  // what the schema asks and cannot be enforced is an error, not a warning
};

// What the client said about thinking; what it left open, the template decides.
struct Reasoning {
  std::optional<bool> enabled = {};
  std::string effort = {};     // minimal, low, medium, high: for templates that take it
  int64_t budget_tokens = -1;  // thinking ends after so many; -1: no bound
};

// What the client said about sampling; what it left open comes from the server's flags and then
// from the model.
struct AskedSampling {
  std::optional<float> temperature = {}, top_p = {}, min_p = {};
  std::optional<int> top_k = {};
  std::optional<float> repeat_penalty = {}, presence_penalty = {}, frequency_penalty = {};
  std::optional<uint64_t> seed = {};  // none: one is drawn, and the answer names it
  std::vector<TokenBias> biases = {};
  bool logprob = false;
  int n_logprobs = 0;
};

// A text or token ids to go on from, as they are: no template.
using Prompt = std::variant<std::string, std::vector<int32_t>>;

struct ApiRequest {
  std::string model = {};  // as asked for: the answer echoes it
  // A conversation, or where there are prompts those, each with `n` choices of its own.
  ChatInput chat = {};
  std::vector<Prompt> prompts = {};
  bool echo = false;  // the prompt's text comes back before the answer
  // What the answer begins with, put after the generation prompt and not repeated to the client.
  std::string prefill = {};

  int n = 1;  // choices
  int64_t max_tokens = -1;
  std::vector<std::string> stops = {};
  bool ignore_end = false;
  AskedSampling sampling = {};
  ToolChoice tool_choice = {};
  bool parallel_calls = true;
  ResponseFormat format = {};
  Reasoning reasoning = {};

  bool stream = false;
  bool include_usage = false;
  bool background = false;      // as a job
  bool wants_progress = false;  // events while a long prompt is computed

  std::string session = {};  // who is being answered, for fairness: a header's or field's word
  bool in_memory = false;    // its context is kept off the disk
  // Which conversation this is, and within which time the client says it will go on: for how long
  // its context is worth keeping. Empty and 0: not said.
  std::string conversation = {};
  double ttl_s = 0;
  std::string salt = {};                   // the cache is not shared with those who have another
  int priority = 0;                        // lower is sooner
  std::vector<std::string> warnings = {};  // what was ignored and would be missed
  Json dialect = {};  // what the dialect's own writer needs; nothing else looks at it
};

}  // namespace millrace::serve
