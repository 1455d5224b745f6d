// Which jobs run: a few at once, of each tenant in the order of their arrival, the tenant first
// that has the fewest running and was served longest ago. A run goes on from the tokens that are
// committed; what it draws goes to the writer. On the jobs' thread, except where said.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "serve/jobs/loop.h"
#include "serve/jobs/store.h"
#include "serve/jobs/writer.h"
#include "serve/service.h"

namespace millrace::serve {

class JobRunner {
 public:
  // All outlive it. `on_change`, on the jobs' thread: this job has new tokens, or its run ended.
  struct Parts {
    Service& service;
    JobLoop& loop;
    JobWriter& writer;
    const JobStore& reader;
    JobMetrics& metrics;
    std::function<void(int64_t n)> on_change;
  };
  JobRunner(Parts parts, int n_parallel) : parts_(std::move(parts)), n_parallel_(n_parallel) {}

  // It is queued and may run here.
  void add(int64_t n, const std::string& tenant);
  // It is not to run (any more): ends its run at the next token.
  void drop(int64_t n);
  bool is_running(int64_t n) const { return runs_.contains(n); }
  size_t n_running() const { return runs_.size(); }
  size_t n_unfinished() const { return waiting_.size() + runs_.size(); }
  // Nothing is begun while it is held; what runs ends at the next token and waits.
  void hold(bool is_held);
  // Tries again where the store could not be read. False: there is nothing to try.
  bool retry() {
    if (is_unread_) fill();
    return is_unread_;
  }

 private:
  struct Run;
  using RunPtr = std::shared_ptr<Run>;
  struct Ready {
    Ask ask;
    int64_t n_drawn = 0;
  };

  void fill();
  std::map<int64_t, std::string>::iterator next();
  ApiResult<std::shared_ptr<Ready>> ready(const JobRow& row) const;
  // What failed; where the store could not be read, it may begin another time.
  ApiError begin(const JobRow& row);
  void bind(const RunPtr& run, Ask& ask);
  void fail(int64_t n, const ApiError& error);
  void stop(const RunPtr& run);
  void ended(const RunPtr& run);

  const Parts parts_;
  const int n_parallel_;
  bool is_held_ = false, is_unread_ = false;
  std::map<int64_t, std::string> waiting_;  // by arrival: whose they are
  std::map<int64_t, RunPtr> runs_;
  std::map<std::string, uint64_t> served_;  // when a tenant's job was last begun
  uint64_t n_begun_ = 0;
};

}  // namespace millrace::serve
