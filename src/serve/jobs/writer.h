// The thread that writes jobs down. Whoever has something to write never waits for the disk: it is
// queued, written together with what came meanwhile (one commit, at most kGatherS after the first
// of it), and only then told on. What fails is tried again until it succeeds; what a client waits
// for is given up instead, and the client hears why.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "serve/jobs/store.h"
#include "serve/metrics.h"

namespace millrace::serve {

class JobWriter {
 public:
  using Work = std::function<Status(JobStore& store)>;
  using Then = std::function<void(const Status& status)>;
  // How long tokens may wait for others. A commit itself takes a millisecond or two on an SSD.
  static constexpr double kGatherS = 0.02;

  // `on_change`, on the writer's thread: the first failure, and the first success after one.
  JobWriter(JobStore store, JobMetrics& metrics, std::function<void(const Status&)> on_change);
  ~JobWriter();  // as stop()

  // All from any thread. `then` is called on the writer's thread, after the commit.
  // For somebody who waits: done, or `then` hears why not.
  void ask(Work work, Then then);
  // What has happened and must be kept, in the order in which it is given.
  void keep(Work work, Then then);
  void token(int64_t job, int64_t at, int32_t token, const std::shared_ptr<const Then>& then);
  // Writes what is there, once more where that fails, and ends the thread.
  void stop();

 private:
  struct Order {
    Work work = {};
    Then then = {};
    bool is_kept = false;
    int64_t since_ns = 0;
    // Tokens, where there is no work.
    int64_t job = 0, at = 0;
    std::vector<int32_t> tokens = {};
    std::shared_ptr<const Then> then_tokens = {};
  };

  void push(Order order, bool is_urgent);
  void run() noexcept;
  bool wait(std::unique_lock<std::mutex>& lock);
  Status write(std::vector<Order>& batch);
  void settle(std::vector<Order>& batch, const Status& status);

  JobStore store_;
  JobMetrics& metrics_;
  const std::function<void(const Status&)> on_change_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Order> orders_;
  std::unordered_map<int64_t, size_t> open_;  // where more tokens of a job may be put
  bool is_urgent_ = false, stopping_ = false;
  bool has_failed_ = false;  // the last write did; the thread's own
  std::thread thread_;
};

}  // namespace millrace::serve
