// Many requests over one engine. Each step computes a token for every request that decodes and, of
// those still in their prompts, as much as a bounded time is enough for, so that a long prompt
// never freezes the others. Who waits goes by priority, then by how little its session has been
// served lately and how long it has waited. Prompts are computed one after the other: that one
// first after which its session has been served least, every fourth time the oldest. A prompt whose
// beginning another request is computing waits for that. When pages run out, the request of the
// lowest priority is moved aside; it goes on later, with the same tokens. What the disk has of a
// prompt and memory lacks is read before it is let in, while others are computed. What runs in the
// background keeps nobody waiting for longer than a short step.
//
// It belongs to the engine's thread: asks come in and callbacks go out on that thread alone.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "engine/language_model.h"
#include "engine/pace.h"

namespace millrace {

// One answer to be made.
struct Ask {
  std::vector<int32_t> prompt = {};
  Generation how = {};
  uint32_t choice = 0;
  std::unique_ptr<TokenRule> rule = {};
  std::string session = {};  // whom it serves; empty: itself alone
  std::string salt = {};     // of the prefix tree
  bool persists = true;      // its context may be written to disk
  // For how long its context is worth keeping: whose share it is, which conversation (empty: not
  // said), and within which time the client says it will be back (0: not said).
  std::string tenant = {}, conversation = {};
  double ttl_s = 0;
  bool is_ahead = false;  // nobody asked for it yet
  // Asked at its end: the tool that the answer calls, whose result the client will be back with.
  std::function<std::string()> called = {};
  int priority = 0;  // lower is sooner
  // It takes what the others leave: it rests while one of them is in its prompt, and its own prompt
  // is computed in short steps.
  bool is_background = false;
  std::vector<int32_t> drawn =
      {};  // by an earlier run, and taken by the rule: it goes on from them
  OnToken on_token = {};
  // Tokens of the prompt that are computed or were remembered: first when it is let in, then after
  // every step of it.
  std::function<void(int64_t n_done)> on_prompt = {};
  // Last of all; `why` says what failed.
  std::function<void(const Generated& result, const Status& why)> on_end = {};
};

struct SchedulerOptions {
  double chunk_s = 0.2;              // that a step with prompts may take while others decode
  int64_t chunk_tokens = INT64_MAX;  // at most, whatever the clock says
};

class Scheduler {
 public:
  using Id = uint64_t;
  enum class Phase : unsigned char { queued, restoring, prefill, decode };

  Scheduler(LanguageModel& model, const SchedulerOptions& options);
  ~Scheduler();

  // Refuses what can never be done; anything else ends with on_end.
  Result<Id> submit(Ask ask);
  void cancel(Id id);
  void cancel_all();
  bool is_idle() const { return waiting_.empty() && running_.empty(); }
  // Lets in who may run and makes one step. What fails ends the requests it concerns.
  void step();
  // Nothing can be computed until the disk has read something.
  bool waits_for_disk() const;

  struct Shown {
    Id id;
    std::string session;
    Phase phase;
    int64_t n_prompt, n_cached, n_done, n_tokens;
    double age_s;
  };
  std::vector<Shown> shown() const;
  struct Counts {
    int64_t n_steps = 0, n_rows = 0;
    int64_t n_prompt = 0, n_cached = 0, n_computed = 0, n_drawn = 0;  // tokens
    int64_t n_from_disk = 0;                                          // of n_cached
    int64_t n_moved_aside = 0;
    double step_s = 0;  // the last step took
  };
  const Counts& counts() const { return counts_; }
  // Tokens of one request that the pages can hold when it is alone.
  int64_t capacity() const;

 private:
  struct Task;
  using Tasks = std::list<std::unique_ptr<Task>>;

  bool is_before(const Task& a, const Task& b) const;
  double attained(const Task& task) const;
  void serve(const Task& task, int64_t n_tokens);
  void fade();
  bool waits_for_another(Task& task) const;
  bool still_waits(const Task& task) const;
  bool has_room(const Task& task) const;
  int64_t n_on_the_way(size_t group, const Task& to) const;
  bool waits_for_restore(Task& task);
  bool shares_a_restore(const Task& task) const;
  void forget_restore(Task& task);
  bool drop_restores();
  int64_t n_restoring() const;
  void let_in();
  bool let_in(Tasks::iterator waiting);
  Tasks::iterator least(const Task* than);
  bool move_aside(const Task* than);
  void plan();
  bool rests(const Task& task) const;
  std::vector<Task*> prompts() const;
  static std::vector<Task*>::iterator oldest_of(std::vector<Task*>& tasks);
  int64_t add_turn(Task& task, int64_t most);
  void after_step(bool stepped);
  void end(Tasks& from, Tasks::iterator task, const Status& why);
  Use use_of(const Ask& ask, std::span<const int32_t> prompt);

  LanguageModel& model_;
  Engine& engine_;
  const SchedulerOptions options_;
  Tasks waiting_, running_;
  std::unordered_map<std::string, double> served_;  // tokens of each session, fading
  int64_t faded_ns_ = 0;
  int64_t now_ns_ = 0;    // when the step began
  int64_t n_chunks_ = 0;  // steps with a part of a prompt
  Id last_id_ = 0;
  Pace pace_;
  // Of the step that is planned: its work, and what may still come in.
  double work_ = 0;
  int64_t n_rows_ = 0, n_outputs_ = 0;
  bool has_urgent_ = false;  // somebody who is not in the background waits for a first token
  bool is_tight_ = false;    // pages ran out, and no step has succeeded since: nobody is let in
  std::vector<LanguageModel::Turn> turns_;
  struct Turned {
    Task* task;
    bool draws, in_prompt;
  };
  std::vector<Turned> of_;  // whose each turn is
  Counts counts_;
};

}  // namespace millrace
