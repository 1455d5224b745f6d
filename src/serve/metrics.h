// What the server counts, for Prometheus: own names, and the core of vLLM's as aliases, because
// gateways key on those. Counting is lock-free, and reading never waits for a step.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/request.h"
#include "engine/scheduler.h"

namespace millrace::serve {

// Times, in buckets of which each is twice as wide as the one before: 0.1 ms to 14 minutes.
class TimeHistogram {
 public:
  static constexpr int kBuckets = 24;
  static double bound_s(int bucket);

  void add(double seconds);
  // As `name`_bucket, _sum and _count.
  void write(std::string& out, std::string_view name, std::string_view help) const;

 private:
  std::array<std::atomic<int64_t>, kBuckets + 1> counts_{};
  std::atomic<int64_t> sum_ns_{0};
};

// How a prompt relates to the last one of its session.
enum class Divergence : unsigned char {
  first,    // the session is new, or has no name
  extends,  // it goes on from all that was computed
  answer,   // the last answer is rendered otherwise now
  prompt,   // the last prompt is: a system message, a tool list, a date that changed
  evicted,  // the tokens are the same, but their pages were given up
};
inline constexpr int kDivergences = 5;
std::string_view name_of(Divergence divergence);

// What the disk below the engine's memory has done.
struct TierView {
  KvTier::Counts restores = {};
  disk::Tier::Counts disk = {};
  PrefixTree::Counts tree = {};
};

// Of the jobs that run in the background. States: those of JobState, then running and stale.
struct JobMetrics {
  std::array<std::atomic<int64_t>, 7> by_state{};
  std::atomic<int64_t> n_tokens{0};   // committed
  std::atomic<int64_t> n_resumed{0};  // gone on with after a restart, a pause or a failure
  std::atomic<int64_t> n_bytes{0};    // of the budget, in use
  std::atomic<bool> works{false};
  TimeHistogram commit;  // from the first of it to the end of the commit
};

struct Metrics {
  std::array<std::atomic<int64_t>, 5> finished{};  // by Finish
  std::array<std::atomic<int64_t>, kDivergences> diverged{};
  std::atomic<int64_t> n_refused{0};  // for want of room
  std::atomic<int64_t> n_ahead{0};    // tokens computed before they were asked for
  TimeHistogram queue, first_token, between_tokens, request, step;

  struct Now {
    std::string_view model;
    Scheduler::Counts counts;
    int64_t n_running = 0, n_waiting = 0;
    int64_t n_pages = 0, n_free_pages = 0, n_cached_pages = 0, n_dropped_nodes = 0;
    double uptime_s = 0;
    std::optional<TierView> disk = {};
    Retention::Counts retention = {};
    const JobMetrics* jobs = nullptr;
  };
  std::string text(const Now& now) const;
};

}  // namespace millrace::serve
