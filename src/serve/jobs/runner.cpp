#include "serve/jobs/runner.h"

#include <algorithm>
#include <ctime>
#include <tuple>
#include <utility>

#include "serve/jobs/record.h"

namespace millrace::serve {
namespace {

// After everything that somebody waits for, and after what is computed ahead of that.
constexpr int kJobPriority = (1 << 30) + 1;

// What the store says; only a damaged record is the job's own end.
ApiError failure_of(const Status& status) {
  const bool is_damaged = status.code() == Code::corrupt;
  return {.kind = is_damaged ? ApiError::Kind::internal : ApiError::Kind::overloaded,
          .message = std::string(status.message())};
}

}  // namespace

// What is below the line belongs to the engine's thread.
struct JobRunner::Run {
  int64_t n = 0;
  std::string tenant;
  bool is_stopping = false;
  std::shared_ptr<const JobWriter::Then> committed;
  // ----
  Scheduler::Id id = 0;
  int64_t at = 0;  // of its next token
  bool is_let_in = false, is_over = false;
};

void JobRunner::add(int64_t n, const std::string& tenant) {
  if (!runs_.contains(n)) waiting_[n] = tenant;
  fill();
}

void JobRunner::drop(int64_t n) {
  waiting_.erase(n);
  if (const auto it = runs_.find(n); it != runs_.end()) stop(it->second);
}

void JobRunner::hold(bool is_held) {
  is_held_ = is_held;
  if (is_held)
    for (const auto& [n, run] : runs_) stop(run);
  fill();
}

std::map<int64_t, std::string>::iterator JobRunner::next() {
  const auto key = [&](const auto& one) {
    const auto n_running = std::count_if(runs_.begin(), runs_.end(), [&](const auto& run) {
      return run.second->tenant == one.second;
    });
    const auto served = served_.find(one.second);
    return std::tuple(n_running, served == served_.end() ? 0 : served->second, one.first);
  };
  return std::min_element(waiting_.begin(), waiting_.end(),
                          [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

void JobRunner::fill() {
  while (!is_held_ && !waiting_.empty() && std::ssize(runs_) < n_parallel_) {
    const auto it = next();
    const int64_t n = it->first;
    const std::string tenant = it->second;
    served_[tenant] = ++n_begun_;
    waiting_.erase(it);
    const auto row = parts_.reader.at(n);
    ApiError failed;
    if (!row.ok())
      failed = failure_of(row.status());
    else if (row.value() && row.value()->progress.state == JobState::queued)
      failed = begin(*row.value());
    is_unread_ = failed.kind == ApiError::Kind::overloaded;
    if (is_unread_) {
      waiting_[n] = tenant;
      return;
    }
    if (!failed.ok()) fail(n, failed);
  }
}

// The prompt and how to draw are the record's; the grammar is made anew from the request, and has
// taken what was drawn.
ApiResult<std::shared_ptr<JobRunner::Ready>> JobRunner::ready(const JobRow& row) const {
  auto request = request_of(row);
  if (auto* failed = std::get_if<ApiError>(&request)) return std::move(*failed);
  const ApiRequest& asked = std::get<ApiRequest>(request);
  auto terms = read_terms(row.how);
  if (!terms.ok()) return failure_of(terms.status());
  Prepared prepared{.prompts = {row.prompt}, .how = terms->how};
  prepared.output.in_reasoning = terms->in_reasoning;
  if (ApiError failed = parts_.service.preparer().complete(asked, prepared); !failed.ok())
    return failed;
  const auto are_tokens = [n = parts_.service.model().n_vocab()](const auto& ids) {
    return std::all_of(ids.begin(), ids.end(), [n](int32_t id) { return id >= 0 && id < n; });
  };
  auto drawn = parts_.reader.tokens(row.n, 0, row.progress.n_tokens);
  if (!drawn.ok()) return failure_of(drawn.status());
  if (std::ssize(drawn.value()) != row.progress.n_tokens)
    return failure_of(error(Code::corrupt, "of {} tokens of the job {} are stored",
                            row.progress.n_tokens, drawn->size()));
  if (!are_tokens(row.prompt) || !are_tokens(drawn.value()) || !are_tokens(terms->dictated))
    return failure_of(
        error(Code::corrupt, "the job's record has a token that the model does not have"));
  auto rule = parts_.service.rule(asked, prepared, terms->dictated);
  for (const int32_t token : drawn.value())
    if (const Status took = rule ? rule->took(token) : Status(); !took.ok())
      return ApiError{.kind = ApiError::Kind::internal, .message = std::string(took.message())};
  auto out = std::make_shared<Ready>();
  out->n_drawn = row.progress.n_tokens;
  out->ask = {.prompt = row.prompt,
              .how = std::move(prepared.how),
              .rule = std::move(rule),
              .session = "job " + row.tenant,
              .salt = row.tenant + '/' + asked.salt,
              .persists = !asked.in_memory,
              .tenant = row.tenant,
              .priority = kJobPriority,
              .is_background = true,
              .drawn = std::move(drawn).value()};
  return out;
}

ApiError JobRunner::begin(const JobRow& row) {
  auto made = ready(row);
  if (auto* failed = std::get_if<ApiError>(&made)) return std::move(*failed);
  const auto& ready = std::get<std::shared_ptr<Ready>>(made);
  const auto run = std::make_shared<Run>();
  run->n = row.n;
  run->tenant = row.tenant;
  run->at = ready->n_drawn;
  run->committed = std::make_shared<const JobWriter::Then>(
      [this, n = row.n](const Status&) { parts_.loop.post([this, n] { parts_.on_change(n); }); });
  runs_[row.n] = run;
  if (row.progress.n_runs > 0) ++parts_.metrics.n_resumed;
  bind(run, ready->ask);
  parts_.service.on_engine([this, run, ready](Scheduler& scheduler) {
    if (run->is_over) return;  // it was stopped before it began
    auto on_end = ready->ask.on_end;
    const auto id = scheduler.submit(std::move(ready->ask));
    if (id.ok())
      run->id = id.value();
    else
      on_end({.finish = Finish::failed}, id.status());
  });
  parts_.on_change(row.n);
  return {};
}

void JobRunner::bind(const RunPtr& run, Ask& ask) {
  JobWriter& writer = parts_.writer;
  const int64_t n_prompt = std::ssize(ask.prompt);
  ask.on_prompt = [&writer, run, n_prompt](int64_t n_done) {
    if (std::exchange(run->is_let_in, true)) return;
    writer.keep([n = run->n, n_cached = std::min(n_done, n_prompt)](
                    JobStore& store) { return store.note_run(n, n_cached, std::time(nullptr)); },
                *run->committed);
  };
  ask.on_token = [&writer, run](const TokenEvent& event) {
    if (event.token != nullptr) writer.token(run->n, run->at++, event.token->token, run->committed);
  };
  ask.on_end = [this, &writer, run](const Generated& result, const Status& why) {
    run->is_over = true;
    JobEnd end{.finish = result.finish,
               .stop_string = result.stop_string,
               .error = why.ok() ? ApiError() : api_error(why),
               .prompt_s = result.prompt_s,
               .tokens_s = result.tokens_s};
    const auto work = [n = run->n, end = std::move(end)](JobStore& store) -> Status {
      if (end.finish == Finish::cancelled) return {};  // it goes on another time
      const auto state = end.finish == Finish::failed ? JobState::failed : JobState::completed;
      return store.end(n, state, text_of(end), std::time(nullptr)).status();
    };
    writer.keep(work,
                [this, run](const Status&) { parts_.loop.post([this, run] { ended(run); }); });
  };
}

void JobRunner::stop(const RunPtr& run) {
  if (std::exchange(run->is_stopping, true)) return;
  parts_.service.on_engine([this, run](Scheduler& scheduler) {
    if (run->is_over) return;
    if (run->id != 0) return scheduler.cancel(run->id);
    run->is_over = true;
    parts_.loop.post([this, run] { ended(run); });
  });
}

void JobRunner::ended(const RunPtr& run) {
  runs_.erase(run->n);
  const auto now = parts_.reader.progress(run->n);
  const bool may_wait = !now.ok() || (now.value() && now.value()->state == JobState::queued);
  if (may_wait) waiting_[run->n] = run->tenant;  // fill() looks again
  parts_.on_change(run->n);
  fill();
}

// Also of one that never ran.
void JobRunner::fail(int64_t n, const ApiError& error) {
  const JobEnd end{.finish = Finish::failed, .error = error};
  parts_.writer.keep(
      [n, end](JobStore& store) {
        return store.end(n, JobState::failed, text_of(end), std::time(nullptr)).status();
      },
      [this, n](const Status&) { parts_.loop.post([this, n] { parts_.on_change(n); }); });
}

}  // namespace millrace::serve
