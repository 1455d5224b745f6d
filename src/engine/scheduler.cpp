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
// And of a step in which only prompts in the background are computed: who comes meanwhile waits for
// its end.
constexpr double kBackgroundShare = 0.25;
constexpr int64_t kOldestEvery = 4;  // chunks
// A record that turns out to be damaged ends a restore; the next goes on without it.
constexpr int kMostRestores = 4;
constexpr int64_t kMostRestoring = 8;  // at once
// A second of waiting makes up for so many tokens: who was served much does not wait for ever.
constexpr double kTokensPerSecond = 500;

TurnEnd end_of(const Generated& result) {
  if (result.finish == Finish::end) return TurnEnd::end;
  const bool is_cut = result.finish == Finish::stop_string || result.finish == Finish::length;
  return is_cut ? TurnEnd::cut : TurnEnd::gone;
}

}  // namespace

struct Scheduler::Task {
  Id id = 0;
  Ask ask;
  std::unique_ptr<Request> request;
  int64_t arrived_ns = 0;
  Status failure;
  bool has_run = false;
  Use use;
  // The one whose prompt it waits for, until that has so many tokens.
  Id awaited = 0;
  int64_t until = 0;
  KvTier::Id restore = 0;  // what is read for it
  int n_restores = 0;
  int64_t n_in_memory = -1;  // of its prompt, before anything was read for it
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

Result<Scheduler::Id> Scheduler::submit(Ask ask) {
  MILLRACE_TRY(model_.check(ask.prompt, ask.how));
  if (std::ssize(ask.prompt) > capacity())
    return error(Code::invalid_argument,
                 "the prompt of {} tokens does not fit the KV memory, which holds {}; --kv-memory "
                 "sets a larger one",
                 ask.prompt.size(), capacity());
  const auto is_token = [&](int32_t id) { return id >= 0 && id < model_.n_vocab(); };
  if (!std::all_of(ask.drawn.begin(), ask.drawn.end(), is_token))
    return error(Code::invalid_argument, "a token that was drawn is not in the vocabulary");
  auto task = std::make_unique<Task>();
  task->id = ++last_id_;
  if (ask.session.empty()) ask.session = fmt::format("#{}", task->id);
  task->request =
      std::make_unique<Request>(Request::Terms{.tokenizer = model_.tokenizer(),
                                               .n_ctx = capacity(),
                                               .choice = ask.choice,
                                               .rule = std::move(ask.rule)},
                                std::move(ask.prompt), std::move(ask.how), std::move(ask.on_token));
  MILLRACE_TRY(task->request->replay(ask.drawn));
  task->use = use_of(ask, task->request->tokens());
  std::vector<int32_t>().swap(ask.drawn);
  task->ask = std::move(ask);
  task->arrived_ns = now_ns();
  waiting_.push_back(std::move(task));
  return last_id_;
}

Use Scheduler::use_of(const Ask& ask, std::span<const int32_t> prompt) {
  const Retention::Arrival arrival{.tenant = ask.tenant,
                                   .session = ask.conversation,
                                   .salt = ask.salt,
                                   .prompt = prompt,
                                   .ttl_s = ask.ttl_s};
  Retention& retention = engine_.retention();
  return ask.is_ahead ? retention.continued(arrival) : retention.arrived(arrival);
}

double Scheduler::attained(const Task& task) const {
  const auto it = served_.find(task.ask.session);
  const double waited_s = static_cast<double>(now_ns_ - task.arrived_ns) * 1e-9;
  return (it == served_.end() ? 0 : it->second) - kTokensPerSecond * waited_s;
}

void Scheduler::serve(const Task& task, int64_t n_tokens) {
  served_[task.ask.session] += static_cast<double>(n_tokens);
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
  if (a.ask.priority != b.ask.priority) return a.ask.priority < b.ask.priority;
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
    if (other->ask.salt != task.ask.salt || other->request->is_decoding()) continue;
    if (other->ask.priority > task.ask.priority) continue;  // who comes first waits for nobody
    const auto theirs = other->request->tokens();
    const auto shared =
        std::mismatch(mine.begin(), mine.end(), theirs.begin(), theirs.end()).first - mine.begin();
    const int64_t n_soon =
        std::min<int64_t>(shared, std::ssize(mine) - 1) / kPageTokens * kPageTokens;
    if (n_soon <= other->n_done() / kPageTokens * kPageTokens) continue;
    if (n_known < 0) n_known = engine_.tree().count(task.ask.salt, mine.first(mine.size() - 1));
    if (n_soon <= n_known) continue;
    task.awaited = other->id;
    task.until = n_soon;
    return true;
  }
  return false;
}

// Pages that those who go before it will take for what is read for them.
int64_t Scheduler::n_on_the_way(size_t group, const Task& to) const {
  int64_t n = 0;
  for (const auto& other : waiting_)
    if (other->restore != 0 && other->ask.priority <= to.ask.priority)
      n += engine_.tier()->n_to_take(other->restore, group);
  return n;
}

// Pages for all that it has, one more for it and for each that runs, and what is on its way from
// disk: so that letting one in does not move another aside at once.
bool Scheduler::has_room(const Task& task) const {
  if (running_.empty() && n_restoring() == 0) return true;
  const auto tokens = task.request->tokens();
  const int64_t n = std::ssize(tokens);
  for (size_t group = 0; group < engine_.n_groups(); ++group) {
    int64_t needed = engine_.n_pages_for(group, n) + 1 + std::ssize(running_) + n_restoring();
    needed += n_on_the_way(group, task);
    if (needed <= engine_.n_free_pages(group)) continue;
    // What only the tree holds is among the reclaimable, whoever uses it then.
    needed -= engine_.tree().n_held(task.ask.salt, tokens.first(tokens.size() - 1), group);
    if (needed > engine_.n_free_pages(group) + engine_.tree().n_reclaimable(group)) return false;
  }
  return true;
}

bool Scheduler::let_in(Tasks::iterator waiting) {
  Task& task = **waiting;
  auto seq = engine_.open(task.request->tokens(), task.ask.salt, task.ask.persists, task.use);
  if (!seq.ok()) return false;
  forget_restore(task);
  const bool is_new = !std::exchange(task.has_run, true);
  const int64_t n_kept = std::ssize(engine_.tokens(seq.value()));
  const int64_t n_from_disk =
      task.n_restores == 0 ? 0 : std::max<int64_t>(n_kept - task.n_in_memory, 0);
  task.n_restores = 0;
  task.request->enter(seq.value(), n_kept, n_from_disk);
  if (is_new) {
    counts_.n_from_disk += n_from_disk;
    counts_.n_prompt += task.request->result().n_prompt;
    counts_.n_cached += task.request->result().n_cached;
    if (!task.ask.is_ahead) engine_.retention().let_in(task.use, n_kept);
  }
  running_.splice(running_.end(), waiting_, waiting);
  if (task.ask.on_prompt && is_new) task.ask.on_prompt(task.n_done());
  return true;
}

int64_t Scheduler::n_restoring() const {
  return std::count_if(waiting_.begin(), waiting_.end(),
                       [](const auto& task) { return task->restore != 0; });
}

bool Scheduler::waits_for_disk() const {
  return turns_.empty() && running_.empty() && n_restoring() > 0;
}

void Scheduler::forget_restore(Task& task) {
  if (task.restore != 0) engine_.tier()->forget(std::exchange(task.restore, 0));
}

// What was read for those that wait is held for them alone: it goes before anybody is moved aside.
bool Scheduler::drop_restores() {
  bool any = false;
  for (const auto& task : waiting_) {
    any |= task->restore != 0;
    forget_restore(*task);
  }
  return any;
}

// Whether another reads what this one needs too and memory lacks: it will find that there.
bool Scheduler::shares_a_restore(const Task& task) const {
  const auto tokens = task.request->tokens();
  const auto mine = tokens.first(tokens.size() - 1);
  int64_t n_known = -1;
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& other) {
    if (other->restore == 0 || other.get() == &task || other->ask.salt != task.ask.salt)
      return false;
    const auto theirs = other->request->tokens();
    const int64_t n_shared =
        std::mismatch(mine.begin(), mine.end(), theirs.begin(), theirs.end()).first - mine.begin();
    if (n_shared < kPageTokens) return false;
    if (n_known < 0) n_known = engine_.tree().count(task.ask.salt, mine);
    return n_shared / kPageTokens * kPageTokens > n_known;
  });
}

// Begins to read what the disk has of its prompt, and says whether that is still under way.
bool Scheduler::waits_for_restore(Task& task) {
  KvTier* tier = engine_.tier();
  if (tier == nullptr) return false;
  if (task.restore != 0 && !tier->is_over(task.restore)) return true;
  if (task.n_restores >= kMostRestores) return false;
  const auto tokens = task.request->tokens().first(task.request->tokens().size() - 1);
  if (task.restore == 0 && (n_restoring() >= kMostRestoring || shares_a_restore(task))) return true;
  if (task.n_in_memory < 0) task.n_in_memory = engine_.tree().count(task.ask.salt, tokens);
  // What the last one read stays where it is until the next has taken hold of it.
  const KvTier::Id next = tier->restore(task.ask.salt, tokens, task.n_restores > 0, task.use);
  if (next == 0) return false;
  forget_restore(task);
  task.restore = next;
  ++task.n_restores;
  return true;
}

void Scheduler::let_in() {
  if (is_tight_ && !running_.empty()) return;
  // Those that something is read for hold pages, which the first in line may be waiting for.
  waiting_.sort([&](const auto& a, const auto& b) {
    if ((a->restore != 0) != (b->restore != 0)) return a->restore != 0;
    return is_before(*a, *b);
  });
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto next = std::next(it);
    Task& task = **it;
    if (task.request->is_finished()) {
      end(waiting_, it, {});
    } else if (!waits_for_another(task)) {
      const bool is_restoring = task.restore != 0;
      const bool full =
          std::ssize(running_) + n_restoring() - is_restoring >= engine_.options().max_seqs;
      // Who is next in line and finds no room keeps those behind from taking it.
      if (!is_restoring && (full || !has_room(task)) && !move_aside(&task)) break;
      if (!waits_for_restore(task) && !let_in(it)) break;
    }
    it = next;
  }
}

// The one that comes last; with `than` only one of a lower priority than that.
Scheduler::Tasks::iterator Scheduler::least(const Task* than) {
  auto worst = running_.end();
  for (auto it = running_.begin(); it != running_.end(); ++it) {
    if (than != nullptr && (*it)->ask.priority <= than->ask.priority) continue;
    if (worst == running_.end() || (*it)->ask.priority > (*worst)->ask.priority ||
        ((*it)->ask.priority == (*worst)->ask.priority && (*it)->id > (*worst)->id))
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

bool Scheduler::rests(const Task& task) const {
  return has_urgent_ && task.ask.is_background;
}

// One after the other, not all a little: shared, they would all be late. What is left of a prompt
// counts as served, so that it keeps its place while it is computed.
std::vector<Scheduler::Task*> Scheduler::prompts() const {
  std::vector<Task*> out;
  for (const auto& task : running_)
    if (!task->request->is_decoding() && !rests(*task)) out.push_back(task.get());
  for (Task* task : out) task->n_left = std::ssize(task->request->pending());
  for (const auto& other : waiting_) {  // who waits for a beginning lends it its haste
    if (other->awaited == 0) continue;
    for (Task* task : out)
      if (other->awaited == task->id && other->until > task->n_done())
        task->n_left = std::min(task->n_left, other->until - task->n_done());
  }
  const auto key = [&](const Task* task) {
    const auto n_left = static_cast<double>(task->n_left);
    return std::tuple(task->ask.priority, attained(*task) + n_left, task->id);
  };
  std::sort(out.begin(), out.end(), [&](Task* a, Task* b) { return key(a) < key(b); });
  return out;
}

// Who comes first by its key might keep the oldest of its priority waiting for ever.
std::vector<Scheduler::Task*>::iterator Scheduler::oldest_of(std::vector<Task*>& tasks) {
  return std::min_element(tasks.begin(), tasks.end(), [](const Task* a, const Task* b) {
    return std::tuple(a->ask.priority, a->id) < std::tuple(b->ask.priority, b->id);
  });
}

void Scheduler::plan() {
  turns_.clear();
  of_.clear();
  work_ = 0;
  n_rows_ = engine_.options().max_rows;
  n_outputs_ = engine_.options().max_outputs;
  running_.sort([&](const auto& a, const auto& b) { return is_before(*a, *b); });
  has_urgent_ = std::any_of(running_.begin(), running_.end(), [](const auto& task) {
    return !task->ask.is_background && !task->request->is_decoding();
  });
  for (const auto& task : running_)
    if (task->request->is_decoding() && !rests(*task))
      add_turn(*task, std::min<int64_t>(n_rows_, 1));
  std::vector<Task*> all = prompts();
  if (all.empty()) return;
  const double whole = pace_.work_in(options_.chunk_s);
  double work = turns_.empty() ? kAlone * whole : std::max(whole - work_, kLeastShare * whole);
  if (!has_urgent_) work = kBackgroundShare * whole;
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
    if (task.ask.on_prompt) task.ask.on_prompt(std::min(task.n_done(), result.n_prompt));
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
  forget_restore(*task);
  if (task->request->seq() >= 0) {
    if (task->request->result().finish != Finish::failed) engine_.remember(task->request->seq());
    engine_.close(task->request->leave());
  }
  if (!task->ask.is_ahead)
    engine_.retention().ended(task->use, end_of(task->request->result()),
                              task->ask.called ? task->ask.called() : "");
  if (task->ask.on_end) task->ask.on_end(task->request->result(), why);
}

void Scheduler::step() {
  now_ns_ = now_ns();
  fade();
  if (engine_.tier() != nullptr) engine_.tier()->pump();
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
  } else if (status.code() == Code::unavailable && drop_restores()) {
    is_tight_ = true;
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
    out.push_back({task.id, task.ask.session, phase, result.n_prompt, result.n_cached,
                   task.n_done(), result.n_tokens,
                   static_cast<double>(now_ns() - task.arrived_ns) * 1e-9});
  };
  for (const auto& task : running_)
    show(*task, task->request->is_decoding() ? Phase::decode : Phase::prefill);
  for (const auto& task : waiting_)
    show(*task, task->restore != 0 ? Phase::restoring : Phase::queued);
  return out;
}

}  // namespace millrace
