// What a job's record says besides its tokens: how they are drawn, what they depend on, how it
// ended. As JSON, which is read with care: the file may have been changed.
#pragma once

#include <string>
#include <vector>

#include "engine/language_model.h"
#include "serve/answer.h"
#include "serve/dialect.h"
#include "serve/jobs/store.h"

namespace millrace::serve {

// How a job's tokens are drawn and read.
struct JobTerms {
  Generation how = {};
  bool in_reasoning = false;           // where the prompt ends
  std::vector<int32_t> dictated = {};  // by a script
  std::string model = {};              // as asked for
};
std::string text_of(const JobTerms& terms);
Result<JobTerms> read_terms(const std::string& json);

// Same root, same tokens. `context`: how long a context can get here.
std::string root_text(const LanguageModel& model, const std::string& name, int64_t n_ctx);
// What keeps a job of root `was` from going on under root `now`, a line each; none: it can.
std::vector<std::string> differences(const std::string& was, const std::string& now);
// Whether its token ids mean the same.
bool same_vocabulary(const std::string& was, const std::string& now);
std::string fingerprint_of(const std::string& root);

struct JobEnd {
  Finish finish = Finish::end;
  std::string stop_string = {};
  ApiError error = {};
  double prompt_s = 0, tokens_s = 0;  // of its last run
};
std::string text_of(const JobEnd& end);
JobEnd read_end(const std::string& json);

// The request of a job, as its dialect reads it.
ApiResult<ApiRequest> request_of(const JobRow& row);
// The dialects that a job may come in, by the name that the record has: "chat_completions",
// "responses", "messages". Null for any other.
const Dialect* job_dialect(std::string_view api);

}  // namespace millrace::serve
