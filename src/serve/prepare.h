// From a request to what the engine can run: the prompt's tokens, how to draw, how to read what the
// model writes. A pure function of the request, the model and the server's settings: no clock, and
// nothing that the engine remembers. It takes time (a template runs, a schema is compiled), so it
// runs on a thread of its own.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/language_model.h"
#include "serve/answer.h"
#include "serve/api_error.h"
#include "serve/api_request.h"
#include "text/grammar/token_grammar.h"
#include "text/output/output_parser.h"

namespace millrace::serve {

struct PrepareOptions {
  int64_t max_prompt_tokens = 0;  // of a prompt that can be answered
  AskedSampling from_flags = {}, from_model = {};
  std::optional<std::tm> date = {};  // for templates that print one
};

struct Prepared {
  std::vector<std::vector<int32_t>> prompts;
  Generation how = {};  // the seed is set where the request has one
  OutputRules output = {};
  std::shared_ptr<const grammar::TokenGrammar> grammar = {};  // null: the answer is free
  std::vector<std::string> warnings = {};
};

class Preparer {
 public:
  // The model outlives it.
  Preparer(const LanguageModel& model, PrepareOptions options);

  ApiResult<Prepared> prepare(const ApiRequest& request, const std::atomic<bool>* stop) const;
  // The rest of what prepare() gives, for a request whose prompt, `how` and place in reasoning are
  // known from before.
  ApiError complete(const ApiRequest& request, Prepared& out) const;
  // The part of it that says how to read the answer.
  void read_as(const ApiRequest& request, Prepared& out) const;
  // The prompt of a conversation, and of what it was rendered from.
  struct Rendered {
    std::string text;
    std::vector<int32_t> tokens;
  };
  Result<Rendered> render(const ApiRequest& request, bool add_generation_prompt,
                          const std::atomic<bool>* stop) const;
  // What the next prompt of this conversation will begin with, whatever the client says or its
  // tools return: the answer as the template renders it once it is history.
  Result<std::vector<int32_t>> next_prompt(const ApiRequest& request,
                                           const AnswerChoice& answer) const;
  // More text cannot fit the context: whoever tokenises it would keep others waiting for nothing.
  size_t max_text_bytes() const { return max_text_bytes_; }
  const OutputFormat& format() const { return format_; }
  const PrepareOptions& options() const { return options_; }

 private:
  ChatInput chat_input(const ApiRequest& request) const;
  Result<std::shared_ptr<const grammar::TokenGrammar>> grammar(
      const ApiRequest& request, bool in_reasoning, std::vector<std::string>& warnings) const;
  ApiError compile(const ApiRequest& request, Prepared& out) const;
  Generation generation(const ApiRequest& request) const;
  Status check_bytes(size_t n_bytes) const;
  ApiError check_length(size_t n_tokens) const;

  const LanguageModel& model_;
  const PrepareOptions options_;
  OutputFormat format_;
  const size_t max_text_bytes_;
  const grammar::Vocabulary vocabulary_;
  // Agents send the same tools again and again; what was compiled lately is kept.
  struct Compiled {
    std::shared_ptr<const grammar::TokenGrammar> grammar;
    std::vector<std::string> warnings;
    uint64_t used = 0;
  };
  mutable std::mutex mutex_;
  mutable std::map<std::string, Compiled> compiled_;
  mutable uint64_t n_uses_ = 0;
};

// What a client gets where render() failed. It depends on the request alone, so it is never a 5xx.
ApiError render_error(const Status& status);

// What is asked for, over what the flags say, over what the model recommends.
Sampling overlay(Sampling base, const AskedSampling& asked);

}  // namespace millrace::serve
