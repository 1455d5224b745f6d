// From a request to what the engine can run: the prompt's tokens, how to draw, how to read what the
// model writes. A pure function of the request, the model and the server's settings: no clock, and
// nothing that the engine remembers. It takes time (a template runs, a schema is compiled), so it
// runs on a thread of its own.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/language_model.h"
#include "serve/api_error.h"
#include "serve/api_request.h"
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
  std::vector<std::string> warnings = {};
};

class Preparer {
 public:
  // The model outlives it.
  Preparer(const LanguageModel& model, PrepareOptions options);

  ApiResult<Prepared> prepare(const ApiRequest& request, const std::atomic<bool>* stop) const;
  // The prompt of a conversation, and of what it was rendered from.
  struct Rendered {
    std::string text;
    std::vector<int32_t> tokens;
  };
  Result<Rendered> render(const ApiRequest& request, bool add_generation_prompt,
                          const std::atomic<bool>* stop) const;
  const OutputFormat& format() const { return format_; }
  const PrepareOptions& options() const { return options_; }

 private:
  ChatInput chat_input(const ApiRequest& request) const;
  Generation generation(const ApiRequest& request) const;
  ApiError check_length(size_t n_tokens) const;

  const LanguageModel& model_;
  const PrepareOptions options_;
  OutputFormat format_;
};

// What is asked for, over what the flags say, over what the model recommends.
Sampling overlay(Sampling base, const AskedSampling& asked);

}  // namespace millrace::serve
