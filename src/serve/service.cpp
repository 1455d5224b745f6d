#include "serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "serve/answer_rule.h"
#include "serve/choice_reader.h"
#include "serve/random.h"

namespace millrace::serve {
namespace {

constexpr double kPublishS = 0.2;
constexpr double kStaleS = 2;
// How often an idle engine looks after what is to be written, how long it sleeps while all wait for
// the disk, and what it gets to write the rest when it stops.
constexpr double kTendS = 0.05, kDiskS = 0.002, kFlushS = 10;
constexpr size_t kStepsShown = 120;
constexpr size_t kSessionsKnown = 64;
// Fewer are computed faster than they are prepared.
constexpr int64_t kLeastAhead = 8;
constexpr int kAheadPriority = 1 << 30;
constexpr size_t kMaxAhead = 32;

double seconds_between(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) * 1e-9;
}

PrepareOptions with_room(PrepareOptions options, int64_t n_tokens) {
  options.max_prompt_tokens = n_tokens;
  return options;
}

}  // namespace

// One request on its way. What is below the line belongs to the engine's thread.
struct Service::Asked {
  Id id = 0;
  ApiRequest request;
  std::string tenant;
  size_t n_bytes = 0;
  Listener listener;
  std::atomic<bool> gone = false;
  std::vector<int32_t> dictated;  // by a script
  int64_t arrived_ns = now_ns();

  // ----
  struct Choice {
    Scheduler::Id id = 0;
    std::unique_ptr<ChoiceReader> reader;
    bool is_over = false, is_let_in = false;
    int64_t last_token_ns = 0;
    std::vector<int32_t> tokens;  // the prompt and what was drawn
  };
  std::vector<Choice> choices;
  std::vector<AnswerEvent> read;  // of the last token
  int64_t submitted_ns = 0;
  bool is_accepted = false, has_failed = false;
  size_t n_over = 0;
  uint64_t seed = 0;
  Usage usage;
  AnswerChoice first;  // what the first choice said

  std::string salt() const { return tenant + '/' + request.salt; }
  bool wants_tokens() const { return request.sampling.logprob || request.sampling.n_logprobs > 0; }
  void emit(const AnswerEvent& event) {
    if (!gone && !has_failed) listener.on_event(event);
  }
  void fail(ApiError error) {
    AnswerEvent event{.kind = AnswerEvent::Kind::failed};
    event.error = std::move(error);
    emit(event);
    has_failed = true;
  }
};

Service::Service(LanguageModel& model, WorkQueue& workers, ServiceOptions options)
    : model_(model),
      workers_(workers),
      options_(std::move(options)),
      scheduler_(model, options_.scheduler),
      preparer_(model, with_room(options_.prepare, scheduler_.capacity())) {
  publish();
}

// What the workers still have of it uses it.
Service::~Service() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  for (const auto& [id, asked] : asked_) asked->gone = true;
  changed_.wait(lock, [&] { return n_tasks_ == 0; });
}

bool Service::later(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    ++n_tasks_;
  }
  const auto finished = [this] {
    const std::lock_guard lock(mutex_);
    --n_tasks_;
    changed_.notify_all();
  };
  const bool taken = workers_.push([work = std::move(work), finished] {
    work();
    finished();
  });
  if (!taken) finished();
  return taken;
}

Service::Id Service::ask(ApiRequest request, size_t n_bytes, const std::string& tenant,
                         Listener listener) {
  auto asked = std::make_shared<Asked>();
  asked->request = std::move(request);
  asked->tenant = tenant;
  asked->n_bytes = n_bytes;
  asked->listener = std::move(listener);
  bool is_full = false;
  {
    const std::lock_guard lock(mutex_);
    asked->id = ++last_id_;
    // One alone is always taken.
    const bool is_heavy = !asked_.empty() && n_bytes_ + n_bytes > options_.max_bytes;
    is_full = asked_.size() >= options_.max_requests || is_heavy || stopping_;
    if (!is_full) {
      asked_.emplace(asked->id, asked);
      n_bytes_ += n_bytes;
    }
  }
  if (!is_full && later([this, asked] { prepare(asked); })) return asked->id;
  ++metrics_.n_refused;
  asked->fail({.kind = ApiError::Kind::overloaded,
               .message = "too many requests are waiting already; try again in a moment",
               .retry_after_s = 2});
  forget(asked->id);
  return asked->id;
}

void Service::forget(Id id) {
  const std::lock_guard lock(mutex_);
  const auto it = asked_.find(id);
  if (it == asked_.end()) return;
  n_bytes_ -= it->second->n_bytes;
  asked_.erase(it);
}

std::vector<int32_t> Service::dictated(const ApiRequest& request) const {
  if (options_.script == nullptr) return {};
  const std::string say =
      options_.script->next(request).value_or("(the script has no line for this)");
  const TextPart part{say, true};
  auto tokens = model_.tokenizer().encode({&part, 1});
  return tokens.ok() ? std::move(tokens).value() : std::vector<int32_t>();
}

void Service::prepare(const AskedPtr& asked) {
  if (asked->gone) return forget(asked->id);
  asked->dictated = dictated(asked->request);
  auto prepared = preparer_.prepare(asked->request, &asked->gone);
  if (auto* failed = std::get_if<ApiError>(&prepared)) {
    asked->fail(std::move(*failed));
    return forget(asked->id);
  }
  auto submission =
      std::make_shared<Submission>(Submission{asked, std::move(std::get<Prepared>(prepared))});
  post([this, submission] { submit(std::move(*submission)); });
}

void Service::post(std::function<void()> message) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(message));
  }
  changed_.notify_all();
}

void Service::on_engine(std::function<void(Scheduler&)> work) {
  post([this, work = std::move(work)] { work(scheduler_); });
}

void Service::cancel(Id id) {
  std::shared_ptr<Asked> asked;
  {
    const std::lock_guard lock(mutex_);
    const auto it = asked_.find(id);
    if (it == asked_.end()) return;
    asked = it->second;
  }
  asked->gone = true;
  post([this, asked] {
    cancel_choices(*asked);
    forget(asked->id);
  });
}

void Service::cancel_choices(const Asked& asked) {
  for (const Asked::Choice& choice : asked.choices)
    if (!choice.is_over && choice.id != 0) scheduler_.cancel(choice.id);
}

// A real request goes on itself with what was begun ahead of it.
void Service::take_over(std::span<const int32_t> prompt, const std::string& salt) {
  std::erase_if(ahead_, [&](const Ahead& ahead) {
    const auto n_same =
        std::mismatch(prompt.begin(), prompt.end(), ahead.prompt.begin(), ahead.prompt.end())
            .first -
        prompt.begin();
    if (ahead.salt != salt || n_same + kPageTokens < std::ssize(ahead.prompt)) return false;
    scheduler_.cancel(ahead.id);
    return true;
  });
}

void Service::submit(Submission submission) {
  const AskedPtr& asked = submission.asked;
  if (asked->gone) return forget(asked->id);
  Prepared& prepared = submission.prepared;
  asked->submitted_ns = now_ns();
  asked->seed = asked->request.sampling.seed.value_or(random_53_bits());
  prepared.how.sampling.seed = asked->seed;
  const size_t n_choices = prepared.prompts.size() * static_cast<size_t>(asked->request.n);
  asked->choices.resize(n_choices);
  for (const auto& prompt : prepared.prompts) {
    asked->usage.n_prompt += std::ssize(prompt);
    take_over(prompt, asked->salt());
  }
  for (size_t i = 0; i < n_choices && !asked->has_failed; ++i) {
    Asked::Choice& choice = asked->choices[i];
    choice.reader = std::make_unique<ChoiceReader>(
        model_.tokenizer(), prepared.output, static_cast<int>(i), [this](int) {
          const ToolFormat format = preparer_.format().tools;
          return call_id(format, random_letters(call_id_letters(format)));
        });
    choice.tokens = prepared.prompts[i / static_cast<size_t>(asked->request.n)];
    const auto id = scheduler_.submit(ask_of(asked, prepared, i));
    if (id.ok()) {
      choice.id = id.value();
    } else {
      asked->fail(api_error(id.status()));
      for (size_t j = 0; j < i; ++j) scheduler_.cancel(asked->choices[j].id);
      forget(asked->id);
    }
  }
  if (!asked->gone && !asked->has_failed) {
    std::vector<std::string> warnings = asked->request.warnings;
    warnings.insert(warnings.end(), prepared.warnings.begin(), prepared.warnings.end());
    asked->listener.on_queued(asked->seed, warnings);
  }
}

namespace {

// Agents come back after a stop string, and after an answer that was cut off, as after any other.
bool may_go_on(const Generated& result) {
  const bool is_cut = result.finish == Finish::stop_string || result.finish == Finish::length;
  return result.finish == Finish::end || (is_cut && result.n_tokens >= kLeastAhead);
}

TokenShown shown(const Sampled& sampled, const Tokenizer& tokenizer) {
  TokenShown out{sampled.token, std::string(tokenizer.piece(sampled.token)), sampled.logprob};
  for (const TokenLogprob& other : sampled.most_likely)
    out.most_likely.push_back(
        {other.token, std::string(tokenizer.piece(other.token)), other.logprob});
  return out;
}

}  // namespace

std::unique_ptr<TokenRule> Service::rule(const ApiRequest& request, const Prepared& prepared,
                                         const std::vector<int32_t>& dictated) const {
  const Tokenizer& tokenizer = model_.tokenizer();
  auto out = std::make_unique<AnswerRule>(model_.n_vocab());
  bool is_bound = false;
  const ReasoningMarkers markers = markers_of(preparer_.format().reasoning);
  const int32_t close = markers.close.empty() ? -1 : tokenizer.special_id(markers.close);
  if (request.reasoning.budget_tokens >= 0 && close >= 0) {
    out->bound_reasoning(request.reasoning.budget_tokens, tokenizer.special_id(markers.open), close,
                         prepared.output.in_reasoning);
    is_bound = true;
  }
  if (prepared.grammar) out->hold_to(prepared.grammar, request.prefill);
  if (!dictated.empty()) out->dictate(dictated, tokenizer.eog().front());
  if (!is_bound && !prepared.grammar && dictated.empty()) return nullptr;
  return out;
}

Ask Service::ask_of(const AskedPtr& asked, const Prepared& prepared, size_t index) {
  const auto n = static_cast<size_t>(asked->request.n);
  return {.prompt = prepared.prompts[index / n],
          .how = prepared.how,
          .choice = static_cast<uint32_t>(index % n),
          .rule = rule(asked->request, prepared, asked->dictated),
          .session = asked->request.session.empty() ? std::string()
                                                    : asked->tenant + '/' + asked->request.session,
          .salt = asked->salt(),
          .persists = !asked->request.in_memory,
          .tenant = asked->tenant,
          .conversation = asked->request.conversation,
          .ttl_s = asked->request.ttl_s,
          .called =
              [asked] {
                const auto& calls = asked->first.calls;
                return calls.empty() ? std::string() : calls.front().name;
              },
          .priority = asked->request.priority,
          .on_token = [this, asked, index](const TokenEvent& token) { take(*asked, index, token); },
          .on_prompt = [this, asked, index](int64_t n_done) { let_in(*asked, index, n_done); },
          .on_end = [this, asked, index](const Generated& result,
                                         const Status& why) { end(asked, index, result, why); }};
}

void Service::let_in(Asked& asked, size_t index, int64_t n_done) {
  Asked::Choice& choice = asked.choices[index];
  const bool is_new = !std::exchange(choice.is_let_in, true);
  if (is_new && index % static_cast<size_t>(asked.request.n) == 0) asked.usage.n_cached += n_done;
  if (!std::exchange(asked.is_accepted, true)) {
    ++metrics_.diverged[static_cast<size_t>(divergence(asked, choice.tokens, n_done))];
    AnswerEvent event{.kind = AnswerEvent::Kind::accepted};
    event.seed = asked.seed;
    event.usage = asked.usage;
    asked.emit(event);
  }
  if (is_new && asked.request.echo) {
    AnswerEvent event{.kind = AnswerEvent::Kind::text, .choice = static_cast<int>(index)};
    event.text = model_.tokenizer().decode(choice.tokens);
    asked.emit(event);
  }
  if (!asked.request.wants_progress) return;
  AnswerEvent event{.kind = AnswerEvent::Kind::progress};
  event.n_done = n_done;
  event.usage = asked.usage;
  asked.emit(event);
}

void Service::take(Asked& asked, size_t index, const TokenEvent& token) {
  Asked::Choice& choice = asked.choices[index];
  if (token.token != nullptr && asked.wants_tokens()) {
    AnswerEvent event{.kind = AnswerEvent::Kind::tokens, .choice = static_cast<int>(index)};
    event.tokens.push_back(shown(*token.token, model_.tokenizer()));
    asked.emit(event);
  }
  choice.reader->push(token, asked.read);
  for (const AnswerEvent& event : asked.read) {
    if (index == 0) asked.first.add(event);
    asked.emit(event);
  }
  asked.read.clear();
  if (token.token == nullptr) return;
  choice.tokens.push_back(token.token->token);
  const int64_t now = now_ns();
  if (choice.last_token_ns == 0)
    metrics_.first_token.add(seconds_between(asked.arrived_ns, now));
  else
    metrics_.between_tokens.add(seconds_between(choice.last_token_ns, now));
  choice.last_token_ns = now;
}

void Service::end(const AskedPtr& asked, size_t index, const Generated& result, const Status& why) {
  Asked::Choice& choice = asked->choices[index];
  choice.is_over = true;
  ++metrics_.finished[static_cast<size_t>(result.finish)];
  if (result.n_tokens > 0) note_end(*asked, choice.tokens, result.n_prompt);
  if (!why.ok()) {
    asked->fail(api_error(why));
    post([this, asked] { cancel_choices(*asked); });
  }
  Usage& usage = asked->usage;
  usage.n_completion += result.n_tokens;
  usage.n_reasoning += choice.reader->n_reasoning();
  if (index % static_cast<size_t>(asked->request.n) == 0) usage.n_from_disk += result.n_from_disk;
  if (index == 0) {
    usage.queue_s = seconds_between(asked->arrived_ns, asked->submitted_ns) + result.queue_s;
    metrics_.queue.add(usage.queue_s);
  }
  usage.prompt_s = std::max(usage.prompt_s, result.prompt_s);
  usage.completion_s = std::max(usage.completion_s, result.tokens_s);
  AnswerEvent event{.kind = AnswerEvent::Kind::finished, .choice = static_cast<int>(index)};
  event.finish = choice.reader->reason(result.finish);
  event.stop_string = result.stop_string;
  event.usage = usage;
  asked->emit(event);
  if (++asked->n_over < asked->choices.size()) return;
  metrics_.request.add(seconds_between(asked->arrived_ns, now_ns()));
  AnswerEvent done{.kind = AnswerEvent::Kind::done};
  done.usage = usage;
  asked->emit(done);
  forget(asked->id);
  if (may_go_on(result) && asked->request.prompts.empty() && asked->choices.size() == 1)
    later([this, asked] { go_ahead(asked); });
}

void Service::go_ahead(const AskedPtr& asked) {
  auto next = preparer_.next_prompt(asked->request, asked->first);
  if (!next.ok() || next->empty()) return;
  auto tokens = std::make_shared<std::vector<int32_t>>(std::move(next).value());
  post([this, asked, tokens] {
    const std::string salt = asked->salt();
    const int64_t n_new = std::ssize(*tokens) - model_.engine().tree().count(salt, *tokens);
    if (n_new < kLeastAhead) return;
    Ask ask{.prompt = *tokens,
            .salt = salt,
            .persists = !asked->request.in_memory,
            .tenant = asked->tenant,
            .conversation = asked->request.conversation,
            .is_ahead = true,
            .priority = kAheadPriority};
    ask.how.max_tokens = 1;
    ask.on_token = [](const TokenEvent&) {};
    ask.on_end = [this](const Generated& result, const Status&) {
      if (result.n_tokens > 0) metrics_.n_ahead += result.n_prompt - result.n_cached;
    };
    const auto id = scheduler_.submit(std::move(ask));
    if (!id.ok()) return;
    if (ahead_.size() >= kMaxAhead) ahead_.erase(ahead_.begin());
    ahead_.push_back({id.value(), std::move(*tokens), salt});
  });
}

void Service::note_end(const Asked& asked, const std::vector<int32_t>& tokens, int64_t n_prompt) {
  if (asked.request.session.empty()) return;
  last_turns_[asked.tenant + '/' + asked.request.session] = {tokens, n_prompt, ++n_turns_};
  if (last_turns_.size() <= kSessionsKnown) return;
  last_turns_.erase(
      std::min_element(last_turns_.begin(), last_turns_.end(),
                       [](const auto& a, const auto& b) { return a.second.turn < b.second.turn; }));
}

// The last token drawn is never computed, and the tree may lack the end of a page.
Divergence Service::divergence(const Asked& asked, const std::vector<int32_t>& prompt,
                               int64_t n_cached) {
  const auto last = last_turns_.find(asked.tenant + '/' + asked.request.session);
  if (asked.request.session.empty() || last == last_turns_.end()) return Divergence::first;
  const std::vector<int32_t>& before = last->second.tokens;
  const int64_t n_same =
      std::mismatch(prompt.begin(), prompt.end(), before.begin(), before.end()).first -
      prompt.begin();
  if (n_cached + kPageTokens < std::min<int64_t>(n_same, std::ssize(prompt) - 1))
    return Divergence::evicted;
  if (n_same >= std::ssize(before) - 1) return Divergence::extends;
  return n_same >= last->second.n_prompt ? Divergence::answer : Divergence::prompt;
}

bool Service::wait_for_work(std::vector<std::function<void()>>& messages) {
  std::unique_lock lock(mutex_);
  if (inbox_.empty() && scheduler_.is_idle()) {
    lock.unlock();
    publish();
    lock.lock();
    const auto has_work = [&] { return stopping_ || !inbox_.empty(); };
    KvTier* tier = model_.engine().tier();
    while (!has_work() && tier != nullptr && tier->is_busy()) {  // something is to be written
      changed_.wait_for(lock, std::chrono::duration<double>(kTendS), has_work);
      lock.unlock();
      tier->pump();
      if (!tier->is_busy() || seconds_between(published_ns_, now_ns()) > kPublishS) publish();
      lock.lock();
    }
    changed_.wait(lock, has_work);
  }
  messages.swap(inbox_);
  return !stopping_;
}

void Service::run() {
  std::vector<std::function<void()>> messages;
  while (wait_for_work(messages)) {
    for (const auto& message : messages) message();
    messages.clear();
    if (scheduler_.is_idle()) continue;
    const int64_t n_steps = scheduler_.counts().n_steps;
    scheduler_.step();
    if (scheduler_.counts().n_steps > n_steps) {
      if (steps_s_.size() >= kStepsShown) steps_s_.erase(steps_s_.begin());
      steps_s_.push_back(scheduler_.counts().step_s);
      metrics_.step.add(scheduler_.counts().step_s);
    }
    if (scheduler_.waits_for_disk()) model_.engine().tier()->wait(kDiskS);
    if (seconds_between(published_ns_, now_ns()) > kPublishS) publish();
  }
  scheduler_.cancel_all();
  if (KvTier* tier = model_.engine().tier(); tier != nullptr) tier->flush(kFlushS);
  publish();
}

void Service::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void Service::publish() {
  const Engine& engine = model_.engine();
  EngineView view{.counts = scheduler_.counts(),
                  .requests = scheduler_.shown(),
                  .step_s = steps_s_,
                  .tree = engine.tree().counts(),
                  .n_pages = engine.n_pages(),
                  .n_free_pages = engine.n_free_pages(),
                  .n_cached_pages = engine.tree().n_reclaimable(0),
                  .retention = engine.retention().counts()};
  if (KvTier* tier = model_.engine().tier(); tier != nullptr)
    view.disk = TierView{tier->counts(), tier->disk().counts(), view.tree};
  const int64_t now = now_ns();
  const double passed_s = seconds_between(published_ns_, now);
  view.tokens_per_s =
      static_cast<double>(view.counts.n_drawn - n_drawn_before_) / std::max(passed_s, 1e-3);
  view.taken_ns = published_ns_ = now;
  n_drawn_before_ = view.counts.n_drawn;
  const std::lock_guard lock(view_mutex_);
  view_ = std::move(view);
}

// An engine with nothing to do publishes nothing.
EngineView Service::view() const {
  const std::lock_guard lock(view_mutex_);
  EngineView out = view_;
  if (seconds_between(out.taken_ns, now_ns()) > kStaleS) out.tokens_per_s = 0;
  return out;
}

}  // namespace millrace::serve
