// Answers to requests, whatever dialect they came in: prepares them on threads of its own, runs
// them on the engine's thread, takes apart what the model writes and gives it out as events. What a
// client sends ends in an error for that client alone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/scheduler.h"
#include "serve/answer.h"
#include "serve/api_request.h"
#include "serve/metrics.h"
#include "serve/prepare.h"
#include "serve/script.h"
#include "serve/work_queue.h"

namespace millrace::serve {

struct ServiceOptions {
  PrepareOptions prepare = {};
  SchedulerOptions scheduler = {};
  size_t max_requests = 2048;            // at once, those that wait included
  size_t max_bytes = size_t{256} << 20;  // of their bodies; in memory they take a few times as much
  Script* script = nullptr;  // what is said instead of what the model would; outlives it
};

// What the engine was doing a moment ago: readable while a step runs.
struct EngineView {
  Scheduler::Counts counts = {};
  std::vector<Scheduler::Shown> requests = {};
  std::vector<double> step_s = {};  // of the last steps
  PrefixTree::Counts tree = {};
  std::optional<TierView> disk = {};
  int64_t n_pages = 0, n_free_pages = 0, n_cached_pages = 0;
  Retention::Counts retention = {};
  double tokens_per_s = 0;
  int64_t taken_ns = 0;
};

class Service {
 public:
  struct Listener {
    // It will be answered: what was wrong with the request itself is known by now.
    std::function<void(uint64_t seed, const std::vector<std::string>& warnings)> on_queued;
    std::function<void(const AnswerEvent&)> on_event;
  };
  using Id = uint64_t;

  // The model, which belongs to the thread that makes the service, and the threads that prepare
  // requests outlive it.
  Service(LanguageModel& model, WorkQueue& workers, ServiceOptions options);
  ~Service();

  // From any thread. Events come one at a time, the last of them `done` or `failed`; the first may
  // come before this returns. `tenant` keeps what is remembered apart.
  // `n_bytes`: what the request took on the wire.
  Id ask(ApiRequest request, size_t n_bytes, const std::string& tenant, Listener listener);
  // The client is gone: no event comes any more, once one that is under way is over.
  void cancel(Id id);

  // Runs on the engine's thread until stop().
  void run();
  void stop();

  // For what is no request: runs on the engine's thread, before its next step. What it submits
  // tells its own callbacks.
  void on_engine(std::function<void(Scheduler&)> work);
  // What a script says to this request; none where there is none.
  std::vector<int32_t> dictated(const ApiRequest& request) const;
  // Which tokens its answer may be made of; null: any.
  std::unique_ptr<TokenRule> rule(const ApiRequest& request, const Prepared& prepared,
                                  const std::vector<int32_t>& dictated) const;

  const Preparer& preparer() const { return preparer_; }
  const LanguageModel& model() const { return model_; }
  // For what takes time and needs no engine. False: too much waits.
  bool later(std::function<void()> work);
  EngineView view() const;
  const Metrics& metrics() const { return metrics_; }

 private:
  struct Asked;
  using AskedPtr = std::shared_ptr<Asked>;
  struct Submission {
    AskedPtr asked;
    Prepared prepared;
  };

  void prepare(const AskedPtr& asked);
  void submit(Submission submission);
  Ask ask_of(const AskedPtr& asked, const Prepared& prepared, size_t index);
  // On the engine's thread: a choice is let in or gets on with its prompt, draws, ends.
  void let_in(Asked& asked, size_t index, int64_t n_done);
  void take(Asked& asked, size_t index, const TokenEvent& token);
  void end(const AskedPtr& asked, size_t index, const Generated& result, const Status& why);
  void forget(Id id);
  void cancel_choices(const Asked& asked);
  void take_over(std::span<const int32_t> prompt, const std::string& salt);
  // Computes what the next prompt of this conversation will have and this answer has not: dropped
  // reasoning, arguments that the template writes in its own way.
  void go_ahead(const AskedPtr& asked);
  void note_end(const Asked& asked, const std::vector<int32_t>& tokens, int64_t n_prompt);
  Divergence divergence(const Asked& asked, const std::vector<int32_t>& prompt, int64_t n_cached);
  void post(std::function<void()> message);
  bool wait_for_work(std::vector<std::function<void()>>& messages);
  void publish();

  LanguageModel& model_;
  WorkQueue& workers_;
  const ServiceOptions options_;
  Scheduler scheduler_;
  const Preparer preparer_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> inbox_;  // to be run on the engine's thread
  std::unordered_map<Id, std::shared_ptr<Asked>> asked_;
  Id last_id_ = 0;
  size_t n_bytes_ = 0;  // of all in asked_
  int n_tasks_ = 0;     // that the workers have of this service
  bool stopping_ = false;

  Metrics metrics_;
  // What sessions were last told, to say why a prompt goes on from less than that.
  struct LastTurn {
    std::vector<int32_t> tokens;
    int64_t n_prompt = 0;
    uint64_t turn = 0;
  };
  std::unordered_map<std::string, LastTurn> last_turns_;
  uint64_t n_turns_ = 0;
  // Work that nobody asked for yet.
  struct Ahead {
    Scheduler::Id id;
    std::vector<int32_t> prompt;
    std::string salt;
  };
  std::vector<Ahead> ahead_;

  mutable std::mutex view_mutex_;
  EngineView view_;
  int64_t published_ns_ = 0, n_drawn_before_ = 0;
  std::vector<double> steps_s_;
};

}  // namespace millrace::serve
