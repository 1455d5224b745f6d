// A few threads for what takes time and is not a step: rendering, tokenising, compiling schemas.
// Bounded: what does not fit is refused, not queued forever.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace::serve {

class WorkQueue {
 public:
  WorkQueue(int n_threads, size_t max_waiting);
  ~WorkQueue();  // what has not begun is dropped
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // False where too much waits already. Work must not throw.
  bool push(std::function<void()> work);

 private:
  void work() noexcept;

  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace millrace::serve
