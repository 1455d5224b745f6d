#include "serve/jobs/replay.h"

#include <fmt/format.h>

#include "hub/digest.h"

namespace millrace::serve {
namespace {

// The same whenever it is made, and no other job's.
ChoiceReader::MakeCallId call_ids(const std::string& job, ToolFormat format) {
  return [job, format](int call) {
    const std::string digest = sha256_of(fmt::format("{} call {}", job, call));
    return call_id(format, digest.substr(0, call_id_letters(format)));
  };
}

}  // namespace

ApiResult<std::unique_ptr<JobReplay>> JobReplay::make(const JobRow& row, const LanguageModel& model,
                                                      const Preparer& preparer) {
  auto request = request_of(row);
  if (auto* error = std::get_if<ApiError>(&request)) return std::move(*error);
  auto terms = read_terms(row.how);
  if (!terms.ok()) return api_error(terms.status());
  Prepared prepared;
  prepared.output.in_reasoning = terms->in_reasoning;
  preparer.read_as(std::get<ApiRequest>(request), prepared);
  return std::unique_ptr<JobReplay>(new JobReplay(row, std::move(std::get<ApiRequest>(request)),
                                                  std::move(terms).value(), model,
                                                  std::move(prepared.output)));
}

JobReplay::JobReplay(const JobRow& row, ApiRequest request, JobTerms terms,
                     const LanguageModel& model, OutputRules rules)
    : dialect_(job_dialect(row.api)),
      request_(std::move(request)),
      terms_(std::move(terms)),
      head_{.id = row.id,
            .model = terms_.model,
            .created_s = row.created_s,
            .fingerprint = fingerprint_of(row.root)},
      tokenizer_(model.tokenizer()),
      text_(tokenizer_, terms_.how.stops),
      reader_(tokenizer_, rules, 0, call_ids(row.id, rules.format.tools)),
      n_prompt_(row.n_prompt) {}

void JobReplay::start(const JobProgress& progress, std::vector<AnswerEvent>& out) {
  has_started_ = true;
  AnswerEvent event{.kind = AnswerEvent::Kind::accepted};
  event.seed = terms_.how.sampling.seed;
  event.usage.n_prompt = n_prompt_;
  event.usage.n_cached = std::max<int64_t>(progress.n_cached, 0);
  out.push_back(std::move(event));
}

void JobReplay::take(std::span<const int32_t> tokens, std::vector<AnswerEvent>& out) {
  for (const int32_t token : tokens) {
    if (token < 0 || token >= tokenizer_.size()) continue;  // of another vocabulary
    const Sampled sampled{.token = token, .most_likely = {}};
    const std::string text = text_.push(token);
    reader_.push({text, &sampled, tokenizer_.is_control(token)}, out);
  }
  n_taken_ += std::ssize(tokens);
}

void JobReplay::end(const JobProgress& progress, std::vector<AnswerEvent>& out) {
  const JobEnd end = read_end(progress.end);
  if (!has_started_) start(progress, out);
  const std::string rest = text_.flush();
  reader_.push({rest, nullptr, false}, out);
  if (progress.state == JobState::failed) {
    AnswerEvent event{.kind = AnswerEvent::Kind::failed};
    event.error = end.error;
    out.push_back(std::move(event));
    return;
  }
  AnswerEvent event{.kind = AnswerEvent::Kind::finished};
  event.finish = reader_.reason(end.finish);
  event.stop_string = end.stop_string;
  event.usage = {.n_prompt = n_prompt_,
                 .n_cached = std::max<int64_t>(progress.n_cached, 0),
                 .n_completion = progress.n_tokens,
                 .n_reasoning = reader_.n_reasoning(),
                 .prompt_s = end.prompt_s,
                 .completion_s = end.tokens_s};
  out.push_back(event);
  event.kind = AnswerEvent::Kind::done;
  out.push_back(std::move(event));
}

// Responses number their events from 0, and clients go on from that number.
JobEvents::JobEvents(const JobReplay& replay, int64_t after)
    : writer_(replay.dialect().stream(replay.request(), replay.head())),
      after_(after),
      first_(replay.dialect().path == "/v1/responses" ? 0 : 1) {}

std::string JobEvents::write(const std::vector<AnswerEvent>& events) {
  std::string out;
  for (const AnswerEvent& event : events) {
    const std::string all = writer_->write(event);
    for (size_t at = 0; at < all.size();) {
      const size_t end = std::min(all.find("\n\n", at), all.size() - 2) + 2;
      const int64_t id = first_ + n_++;
      if (id > after_)
        out += fmt::format("id: {}\n{}", id, std::string_view(all).substr(at, end - at));
      at = end;
    }
  }
  return out;
}

}  // namespace millrace::serve
