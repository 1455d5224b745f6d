// An answer as it comes: a stream of events, the same for every dialect. Of one request they are:
// `accepted` once; then per choice any of reasoning, text, calls and `finished`; at last `done`, or
// `failed` at any point, which is then the last. Choices may interleave; the calls of one choice do
// not: a call has ended before the next begins. Answer is the same collected, for clients that do
// not stream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serve/api_error.h"

namespace millrace::serve {

enum class FinishReason : unsigned char { end, stop_string, length, tool_calls, cancelled };

struct Usage {
  int64_t n_prompt = 0, n_cached = 0;  // of the prompt, and of it from the cache
  int64_t n_from_disk = 0;             // of n_cached
  int64_t n_completion = 0, n_reasoning = 0;
  double queue_s = 0, prompt_s = 0, completion_s = 0;
};

struct TokenShown {
  int32_t token = 0;
  std::string text = {};  // its bytes, not always whole characters
  float logprob = 0;
  std::vector<TokenShown> most_likely = {};
};

struct AnswerEvent {
  enum class Kind : unsigned char {
    accepted,        // usage has n_prompt and n_cached; seed
    progress,        // n_done of usage.n_prompt tokens of the prompt are computed
    reasoning,       // text: the next piece
    text,            // text: the next piece
    call_begin,      // call, call_id, text: the function's name
    call_arguments,  // call, text: the next piece of its JSON
    call_end,        // call
    tokens,          // tokens: what was drawn, for a client that wants log-probabilities
    finished,        // finish, stop_string, usage: of this choice
    done,            // usage: of all choices
    failed,          // error
  };
  Kind kind = Kind::text;
  int choice = 0;
  int call = 0;
  std::string text = {};
  std::string call_id = {};
  std::vector<TokenShown> tokens = {};
  FinishReason finish = FinishReason::end;
  std::string stop_string = {};
  int64_t n_done = 0;
  uint64_t seed = 0;
  Usage usage = {};
  ApiError error = {};
};

struct ToolCall {
  std::string id = {}, name = {}, arguments = {};
};

struct AnswerChoice {
  std::string reasoning = {}, text = {};
  std::vector<ToolCall> calls = {};
  std::vector<TokenShown> tokens = {};
  FinishReason finish = FinishReason::end;
  std::string stop_string = {};

  void add(const AnswerEvent& event);
};

struct Answer {
  std::vector<AnswerChoice> choices = {};
  uint64_t seed = 0;
  Usage usage = {};
  ApiError error = {};  // of one that failed

  void add(const AnswerEvent& event);
};

// What names an answer, and the server that gave it.
struct AnswerHead {
  std::string id = {};     // without the dialect's prefix ("chatcmpl-", "resp_", "msg_")
  std::string model = {};  // echoed
  int64_t created_s = 0;   // unix time
  std::string fingerprint = {};
};

}  // namespace millrace::serve
