// Jobs: answers that are made in the background and survive the end of the process. A job is its
// record (store.h): nothing that a client was told is lost, because it is told after the commit.
// Where the store does not work, the server goes on without jobs, and says why.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/jobs/followers.h"
#include "serve/jobs/loop.h"
#include "serve/jobs/record.h"
#include "serve/jobs/runner.h"
#include "serve/jobs/store.h"
#include "serve/jobs/writer.h"
#include "serve/service.h"

namespace millrace::serve {

struct JobsOptions {
  std::string folder = {};               // empty: none are taken,
  std::string why_off = {};              // because of this
  int64_t keep_s = int64_t{7} * 86400;   // after their end
  int64_t max_bytes = int64_t{1} << 30;  // of all; unfinished ones are never dropped
  int n_parallel = 4;                    // that run at once
  int64_t max_unfinished = 10'000, max_unfinished_of_one = 1'000;  // of all, and of a tenant
};

// What somebody asks to be done.
struct NewJob {
  std::string tenant = {}, api = {}, key = {};
  std::string body = {}, headers = {};  // as JobRow has them
};

class Jobs {
 public:
  enum class Change : unsigned char { pause, resume, cancel };
  template <class T>
  using Then = std::function<void(ApiResult<T>)>;

  // The service outlives it. `model`: its name, for requests that name none.
  Jobs(Service& service, std::string model, JobsOptions options);
  ~Jobs();
  // Runs end at the next token and are committed, followers are let go; nothing is taken any more.
  void stop();
  std::string opening_failure() const { return opening_failure_; }  // for the log; empty: none
  size_t n_unfinished_at_start() const { return n_at_start_; }
  const JobMetrics& metrics() const { return metrics_; }
  const std::string& folder() const { return options_.folder; }

  // From any thread: calls `work` on the jobs' thread. False where too much waits.
  bool later(std::function<void()> work);

  // The rest on the jobs' thread. Why nothing can be read now; none: it can.
  ApiError closed() const;
  struct Submitted {
    JobRow row;
    bool was_there = false;  // the same request came with the same key before
  };
  void submit(NewJob asked, Then<Submitted> then);
  ApiResult<JobRow> find(const std::string& tenant, const std::string& id) const;
  void change(const std::string& tenant, const std::string& id, Change change, Then<JobRow> then);
  // A new job that goes on from the tokens of one that is stale, failed or was cancelled.
  void restart(const std::string& tenant, const std::string& id, Then<JobRow> then);
  void remove(const std::string& tenant, const std::string& id, Then<JobRow> then);
  ApiResult<std::vector<JobRow>> list(const std::string& tenant, int64_t before, int64_t n) const;
  // Events, from the one after `after` on. It begins the reply.
  ApiError follow(const JobRow& row, int64_t after, const std::shared_ptr<Reply>& reply);

  // queued, running, paused, stale, completed, failed or cancelled.
  std::string_view status_of(const JobRow& row) const;
  std::vector<std::string> why_stale(const JobRow& row) const;
  ApiResult<std::vector<int32_t>> tokens(const JobRow& row) const;
  // What the dialects' whole() take; the answer is empty until the job has ended.
  struct Told {
    std::unique_ptr<JobReplay> replay;
    Answer answer;
  };
  ApiResult<Told> told(const JobRow& row) const;
  int64_t keep_s() const { return options_.keep_s; }

 private:
  struct Open;  // what exists where the store works
  Status open();
  double tick();
  ApiError trouble() const;  // why nothing can be changed now
  void store_changed(const Status& status);
  void count();
  ApiResult<JobRow> row_of(const NewJob& asked) const;
  Result<ApiError> refusal(JobStore& store, const std::string& tenant) const;
  void insert(std::shared_ptr<JobRow> row, int64_t tokens_of, Then<Submitted> then);
  ApiResult<JobRow> again(const JobRow& row) const;
  // Then `then` on the jobs' thread.
  void write(JobWriter::Work work, std::function<void(const Status&)> then);

  Service& service_;
  const std::string model_;
  const JobsOptions options_;
  const std::string root_;
  std::string opening_failure_;
  size_t n_at_start_ = 0;
  JobMetrics metrics_;
  std::atomic<int> n_waiting_ = 0;  // of later()
  std::atomic<bool> has_stopped_ = false;
  std::string write_failure_;
  bool stopping_ = false, is_counted_ = false;
  int64_t swept_s_ = 0, counted_ns_ = 0;
  std::unique_ptr<Open> open_;  // before the loop, which uses it
  JobLoop loop_;
};

}  // namespace millrace::serve
