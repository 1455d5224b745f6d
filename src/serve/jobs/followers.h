// Clients that follow jobs: each gets the events of its job from where it wants them, as the tokens
// are committed. What a client is to get is read from the store when it can take it, so a slow one
// costs no memory. On the jobs' thread.
#pragma once

#include <list>
#include <memory>

#include "serve/http.h"
#include "serve/jobs/replay.h"
#include "serve/jobs/store.h"

namespace millrace::serve {

class JobFollowers {
 public:
  static constexpr size_t kMost = 1024;

  explicit JobFollowers(const JobStore& reader);
  ~JobFollowers();

  bool is_full() const { return all_.size() >= kMost; }
  // The reply has begun.
  void add(int64_t n, std::unique_ptr<JobReplay> replay, int64_t after,
           std::shared_ptr<Reply> reply);
  // This job has something new.
  void pump(int64_t n);
  // Goes on with those that could not take more. Seconds until it should be called again.
  double pump_slow();
  void end_all();

 private:
  struct Follower;
  enum class Next : unsigned char { waits, has_more, over };

  // What there is for it, and what it can take.
  Next pump(Follower& follower) const;
  Next write_some(Follower& follower) const;

  const JobStore& reader_;
  std::list<std::unique_ptr<Follower>> all_;
};

}  // namespace millrace::serve
