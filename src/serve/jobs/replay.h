// A job's answer out of its record: the same events, in the same order, however often it was
// interrupted and whoever asks. Tokens go in as they are committed; what a client gets comes out.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/text_stream.h"
#include "serve/choice_reader.h"
#include "serve/jobs/record.h"
#include "serve/prepare.h"

namespace millrace::serve {

class JobReplay {
 public:
  // The model and the preparer outlive it.
  static ApiResult<std::unique_ptr<JobReplay>> make(const JobRow& row, const LanguageModel& model,
                                                    const Preparer& preparer);

  // Each appends what became certain. First start(), then tokens, at last end().
  void start(const JobProgress& progress, std::vector<AnswerEvent>& out);
  void take(std::span<const int32_t> tokens, std::vector<AnswerEvent>& out);
  void end(const JobProgress& progress, std::vector<AnswerEvent>& out);

  bool has_started() const { return has_started_; }
  int64_t n_taken() const { return n_taken_; }
  const ApiRequest& request() const { return request_; }
  const AnswerHead& head() const { return head_; }
  const Dialect& dialect() const { return *dialect_; }

 private:
  JobReplay(const JobRow& row, ApiRequest request, JobTerms terms, const LanguageModel& model,
            OutputRules rules);

  const Dialect* dialect_;
  const ApiRequest request_;
  const JobTerms terms_;
  const AnswerHead head_;
  const Tokenizer& tokenizer_;
  TextStream text_;
  ChoiceReader reader_;
  const int64_t n_prompt_;
  int64_t n_taken_ = 0;
  bool has_started_ = false;
};

// Server-sent events as they go out, numbered from 1, those up to `after` left out.
class JobEvents {
 public:
  JobEvents(const JobReplay& replay, int64_t after);
  std::string write(const std::vector<AnswerEvent>& events);

 private:
  std::unique_ptr<StreamWriter> writer_;
  const int64_t after_;
  const int64_t first_;  // the number of the first event
  int64_t n_ = 0;
};

}  // namespace millrace::serve
