#include "engine/scheduler.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/clock.h"

namespace millrace {
namespace {

// What a session was given counts half after this time.
constexpr double kFadeS = 10;
// A prompt that is computed at all gets on by so many tokens, however little time there is.
constexpr int64_t kLeastChunk = 8;
// Parts of a chunk's time: what prompts get however much the others' rows take, and what they get
// where nobody decodes: somebody may come.
constexpr double kLeastShare = 0.25, kAlone = 2;
constexpr int64_t kOldestEvery = 4;  // chunks
// A second of waiting makes up for so many tokens: who was served much does not wait for ever.
constexpr double kTokensPerSecond = 500;

}  // namespace

struct Scheduler::Task {
  Id id = 0;
  Job job;
  std::unique_ptr<Request> request;
  int64_t arrived_ns = 0;
  Status failure;
  bool has_run = false;
  // The one whose prompt it waits for, until that has so many tokens.
  Id awaited = 0;
  int64_t until = 0;
  int64_t n_left = 0;  // of its prompt, or of what others wait for: for the step that is planned

  int64_t n_done() const {
    return static_cast<int64_t>(request->tokens().size() - request->pending().size());
  }
};

Scheduler::Scheduler(LanguageModel& model, const SchedulerOptions& options)
    : model_(model),
      engine_(model.engine()),
      options_(options),
      faded_ns_(now_ns()),
      pace_(engine_.config()) {}

Scheduler::~Scheduler() {
  cancel_all();
}

int64_t Scheduler::capacity() const {
  int64_t n = engine_.n_ctx();
  for (size_t group = 0; group < engine_.n_groups(); ++group)
    if (engine_.n_pages_for(group, n) > engine_.n_pages(group))
      n = std::min(n, engine_.n_pages(group) * kPageTokens);
  return n;
}

Result<Scheduler::Id> Scheduler::submit(Job job) {
  MILLRACE_TRY(model_.check(job.prompt, job.how));
  if (std::ssize(job.prompt) > capacity())
    return error(Code::invalid_argument,
                 "the prompt of {} tokens does not fit the KV memory, which holds {}; --kv-memory "
                 "sets a larger one",
                 job.prompt.size(), capacity());
  auto task = std::make_unique<Task>();
  task->id = ++last_id_;
  if (job.session.empty()) job.session = fmt::format("#{}", task->id);
  task->request =
      std::make_unique<Request>(Request::Terms{.tokenizer = model_.tokenizer(),
                                               .n_ctx = capacity(),
                                               .choice = job.choice,
                                               .rule = std::move(job.rule)},
                                std::move(job.prompt), std::move(job.how), std::move(job.on_token));
  task->job = std::move(job);
  task->arrived_ns = now_ns();
  waiting_.push_back(std::move(task));
  return last_id_;
}

double Scheduler::attained(const Task& task) const {
  const auto it = served_.find(task.job.session);
  const double waited_s = static_cast<double>(now_ns_ - task.arrived_ns) * 1e-9;
  return (it == served_.end() ? 0 : it->second) - kTokensPerSecond * waited_s;
}

void Scheduler::serve(const Task& task, int64_t n_tokens) {
  served_[task.job.session] += static_cast<double>(n_tokens);
}

void Scheduler::fade() {
  const double passed_s = static_cast<double>(now_ns_ - faded_ns_) * 1e-9;
  if (passed_s < kFadeS / 10) return;
  faded_ns_ = now_ns_;
  const double left = std::exp2(-passed_s / kFadeS);
  for (auto it = served_.begin(); it != served_.end();) {
    it->second *= left;
    it = it->second < 1 ? served_.erase(it) : std::next(it);
  }
}

bool Scheduler::is_before(const Task& a, const Task& b) const {
  if (a.job.priority != b.job.priority) return a.job.priority < b.job.priority;
  const double served_a = attained(a), served_b = attained(b);
  if (served_a != served_b) return served_a < served_b;
  return a.id < b.id;
}

bool Scheduler::still_waits(const Task& task) const {
  return std::any_of(running_.begin(), running_.end(), [&](const auto& other) {
    return other->id == task.awaited && !other->request->is_decoding() &&
           other->n_done() < task.until;
  });
}

// Whether a request that runs will soon have computed a page or more that this one needs too.
// Comparing long prompts takes time, so what was found holds until it has come about.
bool Scheduler::waits_for_another(Task& task) const {
  if (still_waits(task)) return true;
  const auto mine = task.request->tokens();
  int64_t n_known = -1;
  for (const auto& other : running_) {
    if (other->job.salt != task.job.salt || other->request->is_decoding()) continue;
    if (other->job.priority > task.job.priority) continue;  // who comes first waits for nobody
    const auto theirs = other->request->tokens();
    const auto shared =
        std::mismatch(mine.begin(), mine.end(), theirs.begin(), theirs.end()).first - mine.begin();
    const int64_t n_soon =
        std::min<int64_t>(shared, std::ssize(mine) - 1) / kPageTokens * kPageTokens;
    if (n_soon <= other->n_done() / kPageTokens * kPageTokens) continue;
    if (n_known < 0) n_known = engine_.tree().count(task.job.salt, mine.first(mine.size() - 1));
    if (n_soon <= n_known) continue;
    task.awaited = other->id;
    task.until = n_soon;
    return true;
  }
  return false;
}

// Pages for all that it has, and one more for it and for each that runs: so that letting one in
// does not move another aside at once.
bool Scheduler::has_room(const Task& task) const {
  if (running_.empty()) return true;
  const auto tokens = task.request->tokens();
  const int64_t n = std::ssize(tokens);
  for (size_t group = 0; group < engine_.n_groups(); ++group) {
    int64_t needed = engine_.n_pages_for(group, n) + 1 + std::ssize(running_);
    if (needed <= engine_.n_free_pages(group)) continue;
    // What only the tree holds is among the reclaimable, whoever uses it then.
    needed -= engine_.tree().n_held(task.job.salt, tokens.first(tokens.size() - 1), group);
    if (needed > engine_.n_free_pages(group) + engine_.tree().n_reclaimable(group)) return false;
  }
  return true;
}

bool Scheduler::let_in(Tasks::iterator waiting) {
  Task& task = **waiting;
  auto seq = engine_.open(task.request->tokens(), task.job.salt);
  if (!seq.ok()) return false;
  const bool is_new = !std::exchange(task.has_run, true);
  task.request->enter(seq.value(), std::ssize(engine_.tokens(seq.value())));
  if (is_new) {
    counts_.n_prompt += task.request->result().n_prompt;
    counts_.n_cached += task.request->result().n_cached;
  }
  running_.splice(running_.end(), waiting_, waiting);
  if (task.job.on_prompt && is_new) task.job.on_prompt(task.n_done());
  return true;
}

void Scheduler::let_in() {
  if (is_tight_ && !running_.empty()) return;
  waiting_.sort([&](const auto& a, const auto& b) { return is_before(*a, *b); });
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto next = std::next(it);
    Task& task = **it;
    if (task.request->is_finished()) {
      end(waiting_, it, {});
    } else if (!waits_for_another(task)) {
      const bool full = std::ssize(running_) >= engine_.options().max_seqs;
      // Who is next in line and finds no room keeps those behind from taking it.
      if ((full || !has_room(task)) && !move_aside(&task)) break;
      if (!let_in(it)) break;
    }
    it = next;
  }
}

// The one that comes last; with `than` only one of a lower priority than that.
Scheduler::Tasks::iterator Scheduler::least(const Task* than) {
  auto worst = running_.end();
  for (auto it = running_.begin(); it != running_.end(); ++it) {
    if (than != nullptr && (*it)->job.priority <= than->job.priority) continue;
    if (worst == running_.end() || (*it)->job.priority > (*worst)->job.priority ||
        ((*it)->job.priority == (*worst)->job.priority && (*it)->id > (*worst)->id))
      worst = it;
  }
  return worst;
}

bool Scheduler::move_aside(const Task* than) {
  const auto it = least(than);
  if (it == running_.end()) return false;
  Request& request = *(*it)->request;
  engine_.remember(request.seq());
  engine_.close(request.leave());
  waiting_.splice(waiting_.end(), running_, it);
  ++counts_.n_moved_aside;
  return true;
}

// How many of its tokens the step computes.
int64_t Scheduler::add_turn(Task& task, int64_t most) {
  const int64_t n_pending = std::ssize(task.request->pending());
  const int64_t n = std::min(most, n_pending);
  const bool draws = n == n_pending;
  if (n <= 0 || (draws && n_outputs_ == 0)) return 0;
  turns_.push_back({task.request.get(), static_cast<size_t>(n)});
  of_.push_back({&task, draws, task.request->result().n_tokens == 0});
  n_rows_ -= n;
  n_outputs_ -= draws;
  work_ += pace_.work(task.n_done(), n);
  return n;
}

// One after the other, not all a little: shared, they would all be late. What is left of a prompt
// counts as served, so that it keeps its place while it is computed.
std::vector<Scheduler::Task*> Scheduler::prompts() const {
  std::vector<Task*> out;
  for (const auto& task : running_)
    if (!task->request->is_decoding()) out.push_back(task.get());
  for (Task* task : out) task->n_left = std::ssize(task->request->pending());
  for (const auto& other : waiting_) {  // who waits for a beginning lends it its haste
    if (other->awaited == 0) continue;
    for (Task* task : out)
      if (other->awaited == task->id && other->until > task->n_done())
        task->n_left = std::min(task->n_left, other->until - task->n_done());
  }
  const auto key = [&](const Task* task) {
    const auto n_left = static_cast<double>(task->n_left);
    return std::tuple(task->job.priority, attained(*task) + n_left, task->id);
  };
  std::sort(out.begin(), out.end(), [&](Task* a, Task* b) { return key(a) < key(b); });
  return out;
}

// Who comes first by its key might keep the oldest of its priority waiting for ever.
std::vector<Scheduler::Task*>::iterator Scheduler::oldest_of(std::vector<Task*>& tasks) {
  return std::min_element(tasks.begin(), tasks.end(), [](const Task* a, const Task* b) {
    return std::tuple(a->job.priority, a->id) < std::tuple(b->job.priority, b->id);
  });
}

void Scheduler::plan() {
  turns_.clear();
  of_.clear();
  work_ = 0;
  n_rows_ = engine_.options().max_rows;
  n_outputs_ = engine_.options().max_outputs;
  running_.sort([&](const auto& a, const auto& b) { return is_before(*a, *b); });
  for (const auto& task : running_)
    if (task->request->is_decoding()) add_turn(*task, std::min<int64_t>(n_rows_, 1));
  std::vector<Task*> all = prompts();
  if (all.empty()) return;
  const double whole = pace_.work_in(options_.chunk_s);
  double work = turns_.empty() ? kAlone * whole : std::max(whole - work_, kLeastShare * whole);
  int64_t n_left = turns_.empty() ? n_rows_ : std::min(n_rows_, options_.chunk_tokens);
  if (++n_chunks_ % kOldestEvery == 0) {
    const auto oldest = oldest_of(all);
    std::rotate(all.begin(), oldest, oldest + 1);
  }
  for (auto task = all.begin(); task != all.end() && n_left > 0 && work > 0; ++task) {
    const int64_t fits = pace_.fitting((*task)->n_done(), n_left, work);
    const double before = work_;
    n_left -= add_turn(**task, std::max(fits, std::min(n_left, kLeastChunk)));
    work -= work_ - before;
  }
}

// The prompt's end is a place to come back to: the next turn often differs from here on.
void Scheduler::after_step(bool stepped) {
  for (size_t i = 0; i < of_.size() && stepped; ++i) {
    const auto n = static_cast<int64_t>(turns_[i].n);
    Task& task = *of_[i].task;
    const Generated& result = task.request->result();
    serve(task, n);
    counts_.n_rows += n;
    counts_.n_drawn += of_[i].draws;
    if (!of_[i].in_prompt) continue;
    counts_.n_computed += n;
    if (of_[i].draws) engine_.remember(task.request->seq());
    if (task.job.on_prompt) task.job.on_prompt(std::min(task.n_done(), result.n_prompt));
  }
  for (auto it = running_.begin(); it != running_.end();) {
    const auto next = std::next(it);
    if ((*it)->request->is_finished()) end(running_, it, (*it)->failure);
    it = next;
  }
}

void Scheduler::end(Tasks& from, Tasks::iterator it, const Status& why) {
  const std::unique_ptr<Task> task = std::move(*it);
  from.erase(it);
  if (task->request->seq() >= 0) {
    if (task->request->result().finish != Finish::failed) engine_.remember(task->request->seq());
    engine_.close(task->request->leave());
  }
  if (task->job.on_end) task->job.on_end(task->request->result(), why);
}

void Scheduler::step() {
  now_ns_ = now_ns();
  fade();
  let_in();
  plan();
  if (turns_.empty()) return;
  const int64_t start_ns = now_ns();
  const Status status = model_.advance(turns_, [&](Request& request, const Status& why) {
    for (const Turned& turned : of_)
      if (turned.task->request.get() == &request) turned.task->failure = why;
  });
  if (status.ok()) {
    ++counts_.n_steps;
    is_tight_ = false;
    counts_.step_s = static_cast<double>(now_ns() - start_ns) * 1e-9;
    const bool has_prompt = std::any_of(turns_.begin(), turns_.end(),
                                        [](const auto& turn) { return turn.n >= kLeastChunk; });
    if (has_prompt) pace_.learn(work_, counts_.step_s);
  } else if (status.code() != Code::unavailable || running_.size() < 2) {
    for (const Turned& turned : of_) {
      turned.task->failure = status;
      turned.task->request->fail();
    }
  } else {
    move_aside(nullptr);
    is_tight_ = true;
  }
  after_step(status.ok());
}

void Scheduler::cancel(Id id) {
  for (Tasks* tasks : {&waiting_, &running_})
    for (auto it = tasks->begin(); it != tasks->end(); ++it)
      if ((*it)->id == id) {
        (*it)->request->cancel();
        return end(*tasks, it, {});
      }
}

void Scheduler::cancel_all() {
  for (Tasks* tasks : {&waiting_, &running_})
    while (!tasks->empty()) cancel(tasks->front()->id);
}

std::vector<Scheduler::Shown> Scheduler::shown() const {
  std::vector<Shown> out;
  const auto show = [&](const Task& task, Phase phase) {
    const Generated& result = task.request->result();
    out.push_back({task.id, task.job.session, phase, result.n_prompt, result.n_cached,
                   task.n_done(), result.n_tokens,
                   static_cast<double>(now_ns() - task.arrived_ns) * 1e-9});
  };
  for (const auto& task : running_)
    show(*task, task->request->is_decoding() ? Phase::decode : Phase::prefill);
  for (const auto& task : waiting_) show(*task, Phase::queued);
  return out;
}

}  // namespace millrace
