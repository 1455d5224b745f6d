// One prompt to be answered, as a state machine that is driven from outside: it says which tokens
// the next step must compute for it, takes what was drawn, and tells its listener. It never steps
// by itself, so one engine can serve any number of them (advance() in language_model.h).
#pragma once

#include <cstdint>
#include <functional>
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
  int64_t n_prompt = 0, n_cached = 0, n_tokens = 0;
  double prompt_s = 0, tokens_s = 0;  // until the first token, and from it on
};

struct TokenEvent {
  std::string_view text;           // that this token made certain: often none
  const Sampled* token = nullptr;  // null: the last event, of what was held back
  bool is_control = false;         // not text, but what a parser of tool calls looks for
};
using OnToken = std::function<void(const TokenEvent& event)>;

class Request {
 public:
  // The tokenizer and the sequence, which no other request may use meanwhile, outlive it. `n_kept`
  // tokens of the prompt are in the sequence already; `n_ctx` is the longest it may get.
  struct Place {
    const Tokenizer& tokenizer;
    int seq = 0;
    int64_t n_kept = 0, n_ctx = 0;
  };
  Request(const Place& place, std::vector<int32_t> prompt, Generation how, OnToken on_token);

  int seq() const { return place_.seq; }
  bool is_finished() const { return is_finished_; }
  bool is_decoding() const { return n_computed_ >= static_cast<int64_t>(prompt_.size()); }
  const Generated& result() const { return result_; }

  // What its sequence lacks before the next token can be drawn: never empty before the end.
  std::span<const int32_t> pending() const;
  // The first n of them have been computed.
  void computed(size_t n);
  // For drawing from these logits, once nothing is pending.
  SampleRow row(std::span<const float> logits) const;
  // Takes what was drawn; where nothing could be, it ends with that error.
  Status drew(const Sampled& sampled);
  void cancel();
  void fail();  // whoever drives it says why

 private:
  void end(Finish why);
  int64_t n_tokens() const { return result_.n_prompt + result_.n_tokens; }

  const Place place_;
  const std::vector<int32_t> prompt_;
  const Generation how_;
  const OnToken on_token_;
  TextStream text_;
  TokenHistory history_;
  int64_t n_computed_;
  int32_t drawn_ = -1;  // the last token, not computed yet
  bool is_finished_ = false;
  Generated result_;
  int64_t start_ns_;
};

}  // namespace millrace
