// One prompt to be answered, as a state machine that is driven from outside: it says which tokens
// the next step must compute for it, takes what was drawn, and tells its listener. It never steps
// by itself, so one engine can serve any number of them (advance() in language_model.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/sampler.h"
#include "engine/text_stream.h"
#include "engine/token_history.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace {

struct Generation {
  Sampling sampling = {};
  int64_t max_tokens = -1;  // -1: as many as the context holds
  std::vector<std::string> stops = {};
  bool ignore_end = false;  // goes on where the model would end
};

enum class Finish : unsigned char { end, stop_string, length, cancelled, failed };

std::string_view name_of(Finish finish);

struct Generated {
  Finish finish = Finish::end;
  std::string stop_string = {};  // that ended it
  int64_t n_prompt = 0, n_cached = 0, n_tokens = 0;
  int64_t n_from_disk = 0;  // of n_cached
  // Until it got a sequence, from there until the first token, and from that on.
  double queue_s = 0, prompt_s = 0, tokens_s = 0;
};

// Which tokens a request may draw next: a grammar, or a text that is dictated.
class TokenRule {
 public:
  virtual ~TokenRule() = default;
  // Bits as in SampleRow::mask; empty: all are allowed. Valid until the next call.
  virtual std::span<const uint32_t> allowed() = 0;
  virtual Status took(int32_t token) = 0;
};

struct TokenEvent {
  std::string_view text;           // that this token made certain: often none
  const Sampled* token = nullptr;  // null: the last event, of what was held back
  bool is_control = false;         // not text, but what a parser of tool calls looks for
};
using OnToken = std::function<void(const TokenEvent& event)>;

class Request {
 public:
  // The tokenizer outlives it; `n_ctx` is the longest it may get.
  struct Terms {
    const Tokenizer& tokenizer;
    int64_t n_ctx = 0;
    uint32_t choice = 0;  // of those that answer the same prompt
    std::unique_ptr<TokenRule> rule = {};
  };
  Request(Terms terms, std::vector<int32_t> prompt, Generation how, OnToken on_token);
  // Before it enters: these were drawn by an earlier run of it, and it goes on after them. Its rule
  // has taken them, and its listener has heard of them. An error where it had ended before them.
  Status replay(std::span<const int32_t> drawn);

  // It computes in a sequence, which no other request may use meanwhile and which has the first
  // n_kept of its tokens. It may leave one and go on in another.
  void enter(int seq, int64_t n_kept, int64_t n_from_disk = 0);
  // Its first step begins: until now it waited.
  void begin();
  int leave();
  int seq() const { return seq_; }  // -1: it is in none

  bool is_finished() const { return is_finished_; }
  // One more token, and nothing before it, is all that it waits for.
  bool is_decoding() const { return result_.n_tokens > 0 && pending().size() <= 1; }
  const Generated& result() const { return result_; }
  // The prompt and what was drawn.
  std::span<const int32_t> tokens() const { return tokens_; }

  // What its sequence lacks before the next token can be drawn: never empty before the end.
  std::span<const int32_t> pending() const;
  // The first n of them have been computed.
  void computed(size_t n);
  // For drawing once all that is pending has been computed, from this row of the step's logits.
  SampleRow row(int logits_row);
  // Takes what was drawn; where nothing could be, it ends with that error.
  Status drew(const Sampled& sampled);
  void cancel();
  void fail();  // whoever drives it says why

 private:
  std::string add(int32_t token);
  void end_if_done();
  void end(Finish why);

  const Terms terms_;
  std::vector<int32_t> tokens_;
  const Generation how_;
  const OnToken on_token_;
  TextStream text_;
  TokenHistory history_;
  int seq_ = -1;
  int64_t n_computed_ = 0;
  bool has_begun_ = false, is_finished_ = false;
  Generated result_;
  int64_t start_ns_;
};

}  // namespace millrace
