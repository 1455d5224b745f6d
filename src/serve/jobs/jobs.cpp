#include "serve/jobs/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <future>
#include <utility>

#include "base/clock.h"
#include "serve/random.h"

namespace millrace::serve {
namespace {

constexpr int kMostWaiting = 256;
constexpr int64_t kSweepS = 600, kCountNs = 1'000'000'000;
constexpr auto kStopPatience = std::chrono::seconds(20);
constexpr size_t kIdDigits = 32;

ApiError storage_failure(const Status& status) {
  return {.kind = ApiError::Kind::overloaded,
          .message = fmt::format("jobs do not work now: {}", status.message()),
          .retry_after_s = 5};
}

ApiError no_such_job() {
  return {.kind = ApiError::Kind::not_found,
          .message = "there is no such job: it never was, was deleted, or was kept for its time"};
}

ApiError conflict(std::string message) {
  return {.kind = ApiError::Kind::conflict, .message = std::move(message)};
}

std::string how_to_restart(const JobRow& row) {
  return fmt::format("POST /v1/jobs/job_{}/restart makes a new job that goes on from its tokens",
                     row.id);
}

ApiError not_in_a_job(std::string_view what, std::string param) {
  return {.kind = ApiError::Kind::invalid_request,
          .message = fmt::format("{} in a job", what),
          .param = std::move(param)};
}

}  // namespace

struct Jobs::Open {
  Open(JobFolder folder_taken, JobStore writes, JobStore reads, Jobs& jobs)
      : folder(std::move(folder_taken)),
        reader(std::move(reads)),
        writer(std::move(writes), jobs.metrics_,
               [&jobs](const Status& status) {
                 jobs.loop_.post([&jobs, status] { jobs.store_changed(status); });
               }),
        followers(reader),
        runner({.service = jobs.service_,
                .loop = jobs.loop_,
                .writer = writer,
                .reader = reader,
                .metrics = jobs.metrics_,
                .on_change =
                    [&jobs, this](int64_t n) {
                      followers.pump(n);
                      jobs.is_counted_ = false;
                    }},
               jobs.options_.n_parallel) {}

  JobFolder folder;
  JobStore reader;
  JobWriter writer;
  JobFollowers followers;
  JobRunner runner;
};

Jobs::Jobs(Service& service, std::string model, JobsOptions options)
    : service_(service),
      model_(std::move(model)),
      options_(std::move(options)),
      root_(root_text(service.model(), model_, service.preparer().options().max_prompt_tokens)),
      loop_([this] { return tick(); }) {
  std::promise<void> opened;
  loop_.post([&] {
    if (options_.folder.empty())
      opening_failure_ = options_.why_off;
    else if (const Status status = open(); !status.ok())
      opening_failure_ = status.message();
    metrics_.works = opening_failure_.empty();
    opened.set_value();
  });
  opened.get_future().wait();
}

Jobs::~Jobs() {
  stop();
}

Status Jobs::open() {
  MILLRACE_ASSIGN(JobFolder folder, JobFolder::open(options_.folder));
  MILLRACE_ASSIGN(JobStore writes, JobStore::open(folder.database()));
  MILLRACE_ASSIGN(JobStore reads, JobStore::open(folder.database()));
  MILLRACE_ASSIGN(const std::vector<JobRow> unfinished, reads.unfinished());
  open_ = std::make_unique<Open>(std::move(folder), std::move(writes), std::move(reads), *this);
  n_at_start_ = unfinished.size();
  for (const JobRow& row : unfinished)
    if (row.progress.state == JobState::queued && why_stale(row).empty())
      open_->runner.add(row.n, row.tenant);
  return {};
}

void Jobs::stop() {
  if (has_stopped_.exchange(true)) return;
  loop_.post([this] {
    stopping_ = true;
    if (!open_) return;
    open_->runner.hold(true);
    open_->followers.end_all();
  });
  if (open_) {
    const auto deadline = std::chrono::steady_clock::now() + kStopPatience;
    bool is_still = false;
    while (!is_still && std::chrono::steady_clock::now() < deadline) {
      const auto idle = std::make_shared<std::promise<bool>>();
      loop_.post([this, idle] { idle->set_value(open_->runner.n_running() == 0); });
      auto answer = idle->get_future();
      const bool answered = answer.wait_for(kStopPatience) == std::future_status::ready;
      is_still = !answered || answer.get();
      if (!is_still) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    open_->writer.stop();
  }
  loop_.stop();
}

bool Jobs::later(std::function<void()> work) {
  if (n_waiting_.fetch_add(1) >= kMostWaiting) {
    --n_waiting_;
    return false;
  }
  loop_.post([this, work = std::move(work)] {
    --n_waiting_;
    work();
  });
  return true;
}

ApiError Jobs::closed() const {
  if (stopping_)
    return {.kind = ApiError::Kind::overloaded,
            .message = "the server is stopping",
            .retry_after_s = 2};
  if (!opening_failure_.empty())
    return {.kind = ApiError::Kind::overloaded,
            .message = fmt::format("this server takes no jobs: {}", opening_failure_)};
  return {};
}

ApiError Jobs::trouble() const {
  if (ApiError why = closed(); !why.ok() || write_failure_.empty()) return why;
  return {.kind = ApiError::Kind::overloaded,
          .message = fmt::format("jobs do not work now: {}", write_failure_),
          .retry_after_s = 5};
}

// What runs would only fill memory while nothing can be written.
void Jobs::store_changed(const Status& status) {
  write_failure_ = status.message();
  metrics_.works = status.ok();
  if (status.ok())
    fmt::print(stderr, "millrace: jobs work again\n");
  else
    fmt::print(stderr, "millrace: jobs stand still, and are tried again every second: {}\n",
               status.message());
  open_->runner.hold(stopping_ || !status.ok());
}

double Jobs::tick() {
  if (!open_ || stopping_) return 600;
  const int64_t now_s = std::time(nullptr);
  if (now_s - swept_s_ >= kSweepS) {
    swept_s_ = now_s;
    write(
        [this, now_s](JobStore& store) {
          return store.sweep(now_s - options_.keep_s, options_.max_bytes).status();
        },
        [this](const Status&) { is_counted_ = false; });
  }
  // Every commit changes something; who reads the metrics does so every few seconds.
  if (const int64_t now = now_ns(); !is_counted_ && now - counted_ns_ >= kCountNs) {
    counted_ns_ = now;
    is_counted_ = true;
    count();
  }
  const bool retries = open_->runner.retry();
  const double pause_s = open_->followers.pump_slow();
  return is_counted_ && !retries ? pause_s : std::min(pause_s, 1.0);
}

void Jobs::count() {
  auto counts = open_->reader.counts();
  if (!counts.ok()) return;
  for (size_t i = 0; i < kJobStates; ++i) metrics_.by_state[i] = counts->by_state[i];
  const auto n_running = static_cast<int64_t>(open_->runner.n_running());
  const auto n_here = static_cast<int64_t>(open_->runner.n_unfinished());
  // Of those that are stored as queued, some run, and some cannot run here.
  const int64_t n_stale = std::max<int64_t>(counts->by_state[0] - n_here, 0);
  metrics_.by_state[0] = std::max<int64_t>(counts->by_state[0] - n_running - n_stale, 0);
  metrics_.by_state[kJobStates] = n_running;
  metrics_.by_state[kJobStates + 1] = n_stale;
  metrics_.n_bytes = counts->n_bytes;
}

void Jobs::write(JobWriter::Work work, std::function<void(const Status&)> then) {
  open_->writer.ask(std::move(work), [this, then = std::move(then)](const Status& status) {
    loop_.post([then, status] { then(status); });
  });
}

// ---- asking for one

// Of a job that the store has already taken, inside the same change: why it cannot stay. Paused and
// stale ones count too, or a tenant could fill the store with them.
Result<ApiError> Jobs::refusal(JobStore& store, const std::string& tenant) const {
  const auto refuse = [](std::string message) {
    return ApiError{
        .kind = ApiError::Kind::rate_limit, .message = std::move(message), .retry_after_s = 30};
  };
  MILLRACE_ASSIGN(const int64_t n_all, store.n_unfinished());
  MILLRACE_ASSIGN(const JobStore::Load theirs, store.load_of(tenant));
  const bool are_many = n_all > options_.max_unfinished;
  if (are_many || theirs.n_jobs > options_.max_unfinished_of_one)
    return refuse(fmt::format("{} jobs have not ended yet; wait, cancel or delete some",
                              (are_many ? n_all : theirs.n_jobs) - 1));
  // One of several tenants leaves room for the others.
  const int64_t max_bytes = tenant.empty() ? options_.max_bytes : options_.max_bytes / 2;
  bool fits = theirs.n_bytes <= max_bytes;
  if (fits) {
    MILLRACE_ASSIGN(fits, store.make_room(tenant, options_.max_bytes));
  }
  if (fits) return ApiError();
  return refuse(fmt::format(
      "there is no room for the job: unfinished jobs fill the store (--jobs-size, {} bytes{}); "
      "wait, cancel or delete some",
      options_.max_bytes, tenant.empty() ? "" : ", half of it for the unfinished ones of a key"));
}

ApiResult<JobRow> Jobs::row_of(const NewJob& asked) const {
  JobRow row{.id = random_hex(kIdDigits),
             .tenant = asked.tenant,
             .api = asked.api,
             .key = asked.key,
             .body = asked.body,
             .headers = asked.headers,
             .root = root_,
             .created_s = std::time(nullptr)};
  auto parsed = request_of(row);
  if (auto* failed = std::get_if<ApiError>(&parsed)) return std::move(*failed);
  const ApiRequest& request = std::get<ApiRequest>(parsed);
  if (request.n != 1) return not_in_a_job("only one choice can be asked for", "n");
  if (request.sampling.logprob || request.sampling.n_logprobs > 0)
    return not_in_a_job("log-probabilities are not kept", "logprobs");
  auto prepared = service_.preparer().prepare(request, nullptr);
  if (auto* failed = std::get_if<ApiError>(&prepared)) return std::move(*failed);
  Prepared& ready = std::get<Prepared>(prepared);
  row.prompt = std::move(ready.prompts.front());
  row.n_prompt = std::ssize(row.prompt);
  JobTerms terms{.how = std::move(ready.how),
                 .in_reasoning = ready.output.in_reasoning,
                 .dictated = service_.dictated(request),
                 .model = request.model.empty() ? model_ : request.model};
  terms.how.sampling.seed = request.sampling.seed.value_or(random_53_bits());
  // Written down, so that it ends where it would have, wherever it goes on.
  const int64_t n_room = service_.preparer().options().max_prompt_tokens - row.n_prompt;
  if (terms.how.max_tokens < 0 || terms.how.max_tokens > n_room) terms.how.max_tokens = n_room;
  row.how = text_of(terms);
  return row;
}

void Jobs::submit(NewJob asked, Then<Submitted> then) {
  if (ApiError failed = trouble(); !failed.ok()) return then(std::move(failed));
  auto made = row_of(asked);
  if (auto* failed = std::get_if<ApiError>(&made)) return then(std::move(*failed));
  insert(std::make_shared<JobRow>(std::move(std::get<JobRow>(made))), 0, std::move(then));
}

// With the tokens of another job, where there is one.
void Jobs::insert(std::shared_ptr<JobRow> row, int64_t tokens_of, Then<Submitted> then) {
  struct Outcome {
    std::optional<JobRow> known = {};
    ApiError refusal = {};
  };
  const auto outcome = std::make_shared<Outcome>();
  const auto work = [this, row, tokens_of, outcome](JobStore& store) -> Status {
    *outcome = {};
    if (!row->key.empty()) {
      MILLRACE_ASSIGN(outcome->known, store.find_key(row->tenant, row->key));
      if (outcome->known) return {};
    }
    MILLRACE_ASSIGN(row->n, store.insert(*row));
    if (tokens_of != 0) MILLRACE_TRY(store.copy_tokens(tokens_of, row->n));
    MILLRACE_ASSIGN(outcome->refusal, refusal(store, row->tenant));
    return outcome->refusal.ok() ? Status() : store.remove(row->n);
  };
  write(work, [this, row, outcome, then](const Status& status) {
    if (!status.ok()) return then(storage_failure(status));
    if (outcome->known) {
      const JobRow& known = *outcome->known;
      if (known.body == row->body && known.api == row->api)
        return then(Submitted{std::move(*outcome->known), true});
      return then(ApiError{.kind = ApiError::Kind::unprocessable,
                           .message = "this Idempotency-Key came with another request before; use "
                                      "a key once"});
    }
    if (!outcome->refusal.ok()) return then(outcome->refusal);
    open_->runner.add(row->n, row->tenant);
    is_counted_ = false;
    auto stored = again(*row);
    if (auto* failed = std::get_if<ApiError>(&stored)) return then(std::move(*failed));
    then(Submitted{std::move(std::get<JobRow>(stored)), false});
  });
}

// ---- asking for what is there

ApiResult<JobRow> Jobs::find(const std::string& tenant, const std::string& id) const {
  auto row = open_->reader.find(tenant, id);
  if (!row.ok()) return storage_failure(row.status());
  if (!row.value()) return no_such_job();
  return std::move(*row.value());
}

ApiResult<JobRow> Jobs::again(const JobRow& row) const {
  return find(row.tenant, row.id);
}

ApiResult<std::vector<JobRow>> Jobs::list(const std::string& tenant, int64_t before,
                                          int64_t n) const {
  auto rows = open_->reader.list(tenant, before, n);
  if (!rows.ok()) return storage_failure(rows.status());
  return std::move(rows).value();
}

std::vector<std::string> Jobs::why_stale(const JobRow& row) const {
  if (has_ended(row.progress.state) || row.root == root_) return {};
  return differences(row.root, root_);
}

std::string_view Jobs::status_of(const JobRow& row) const {
  if (!has_ended(row.progress.state) && !why_stale(row).empty()) return "stale";
  if (row.progress.state == JobState::queued && open_->runner.is_running(row.n)) return "running";
  return name_of(row.progress.state);
}

ApiResult<std::vector<int32_t>> Jobs::tokens(const JobRow& row) const {
  auto out = open_->reader.tokens(row.n, 0, row.progress.n_tokens);
  if (!out.ok()) return storage_failure(out.status());
  return std::move(out).value();
}

ApiResult<Jobs::Told> Jobs::told(const JobRow& row) const {
  if (!same_vocabulary(row.root, root_))
    return conflict("its tokens are of another model's vocabulary; serve that model to read them");
  auto made = JobReplay::make(row, service_.model(), service_.preparer());
  if (auto* failed = std::get_if<ApiError>(&made)) return std::move(*failed);
  Told out{.replay = std::move(std::get<std::unique_ptr<JobReplay>>(made)), .answer = {}};
  if (!has_ended(row.progress.state)) return out;
  auto ids = tokens(row);
  if (auto* failed = std::get_if<ApiError>(&ids)) return std::move(*failed);
  std::vector<AnswerEvent> events;
  out.replay->start(row.progress, events);
  out.replay->take(std::get<std::vector<int32_t>>(ids), events);
  out.replay->end(row.progress, events);
  for (const AnswerEvent& event : events) out.answer.add(event);
  return out;
}

ApiError Jobs::follow(const JobRow& row, int64_t after, const std::shared_ptr<Reply>& reply) {
  if (const auto why = why_stale(row); !why.empty())
    return conflict(fmt::format("the job is stale, so its events would never end here: {}; {}",
                                fmt::join(why, "; "), how_to_restart(row)));
  if (!same_vocabulary(row.root, root_))
    return conflict("its tokens are of another model's vocabulary; serve that model to read them");
  if (open_->followers.is_full())
    return {.kind = ApiError::Kind::overloaded,
            .message = "too many clients follow jobs already; try again in a moment",
            .retry_after_s = 5};
  auto made = JobReplay::make(row, service_.model(), service_.preparer());
  if (auto* failed = std::get_if<ApiError>(&made)) return std::move(*failed);
  reply->begin_events({{"X-Millrace-Fingerprint", fingerprint_of(row.root)}});
  open_->followers.add(row.n, std::move(std::get<std::unique_ptr<JobReplay>>(made)), after, reply);
  return {};
}

// ---- changing what is there

void Jobs::change(const std::string& tenant, const std::string& id, Change change,
                  Then<JobRow> then) {
  if (ApiError failed = trouble(); !failed.ok()) return then(std::move(failed));
  auto found = find(tenant, id);
  if (auto* failed = std::get_if<ApiError>(&found)) return then(std::move(*failed));
  const auto row = std::make_shared<JobRow>(std::move(std::get<JobRow>(found)));
  if (change == Change::resume && !why_stale(*row).empty())
    return then(
        conflict(fmt::format("the job is stale and would not go on with the same tokens: {}; {}",
                             fmt::join(why_stale(*row), "; "), how_to_restart(*row))));
  const auto changed = std::make_shared<bool>(false);
  const auto work = [n = row->n, change, changed](JobStore& store) -> Status {
    if (change == Change::cancel) {
      const std::string end = text_of(JobEnd{.finish = Finish::cancelled});
      MILLRACE_ASSIGN(*changed, store.end(n, JobState::cancelled, end, std::time(nullptr)));
      return {};
    }
    const auto state = change == Change::pause ? JobState::paused : JobState::queued;
    MILLRACE_ASSIGN(*changed, store.set_state(n, state));
    return {};
  };
  write(work, [this, row, change, changed, then](const Status& status) {
    if (!status.ok()) return then(storage_failure(status));
    is_counted_ = false;
    auto now = again(*row);
    const JobRow* stored = std::get_if<JobRow>(&now);
    if (*changed && change == Change::resume)
      open_->runner.add(row->n, row->tenant);
    else if (*changed)
      open_->runner.drop(row->n);
    open_->followers.pump(row->n);
    const bool is_again = change == Change::cancel && stored != nullptr &&
                          stored->progress.state == JobState::cancelled;
    if (*changed || is_again || stored == nullptr) return then(std::move(now));
    then(conflict(fmt::format("the job is {} already", name_of(stored->progress.state))));
  });
}

void Jobs::restart(const std::string& tenant, const std::string& id, Then<JobRow> then) {
  if (ApiError failed = trouble(); !failed.ok()) return then(std::move(failed));
  auto found = find(tenant, id);
  if (auto* failed = std::get_if<ApiError>(&found)) return then(std::move(*failed));
  const JobRow& old = std::get<JobRow>(found);
  const JobState state = old.progress.state;
  if (state == JobState::completed || (!has_ended(state) && why_stale(old).empty()))
    return then(
        conflict(fmt::format("the job is {}; only one that is stale, failed or was "
                             "cancelled can be restarted",
                             status_of(old))));
  if (!same_vocabulary(old.root, root_))
    return then(
        conflict("its tokens are of another model's vocabulary; send the request again "
                 "instead"));
  auto terms = read_terms(old.how);
  if (!terms.ok()) return then(api_error(terms.status()));
  const int64_t n_room = service_.preparer().options().max_prompt_tokens - old.n_prompt;
  terms->how.max_tokens = std::min(terms->how.max_tokens, n_room);
  if (old.progress.n_tokens >= terms->how.max_tokens)
    return then(conflict(fmt::format(
        "the job has {} tokens already, and {} is all that it may have here; nothing is left to do",
        old.progress.n_tokens, std::max<int64_t>(terms->how.max_tokens, 0))));
  const auto row = std::make_shared<JobRow>(old);
  *row = {.id = random_hex(kIdDigits),
          .tenant = old.tenant,
          .api = old.api,
          .body = old.body,
          .headers = old.headers,
          .how = text_of(terms.value()),
          .root = root_,
          .created_s = std::time(nullptr),
          .n_prompt = old.n_prompt,
          .prompt = old.prompt};
  insert(row, old.n, [then](ApiResult<Submitted> made) {
    if (auto* failed = std::get_if<ApiError>(&made)) return then(std::move(*failed));
    then(std::move(std::get<Submitted>(made).row));
  });
}

void Jobs::remove(const std::string& tenant, const std::string& id, Then<JobRow> then) {
  if (ApiError failed = trouble(); !failed.ok()) return then(std::move(failed));
  auto found = find(tenant, id);
  if (auto* failed = std::get_if<ApiError>(&found)) return then(std::move(*failed));
  const auto row = std::make_shared<JobRow>(std::move(std::get<JobRow>(found)));
  write([n = row->n](JobStore& store) { return store.remove(n); },
        [this, row, then](const Status& status) {
          if (!status.ok()) return then(storage_failure(status));
          is_counted_ = false;
          open_->runner.drop(row->n);
          open_->followers.pump(row->n);
          then(std::move(*row));
        });
}

}  // namespace millrace::serve
