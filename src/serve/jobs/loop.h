// The jobs' own thread: all that concerns them happens on it, one after the other, so that nothing
// of it needs a lock. It has time for the disk, which the engine and the sockets do not have.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace millrace::serve {

class JobLoop {
 public:
  // `tick` is called after all work, and gives the seconds after which it wants to be called
  // anyhow.
  explicit JobLoop(std::function<double()> tick);
  ~JobLoop();  // as stop()
  JobLoop(const JobLoop&) = delete;
  JobLoop& operator=(const JobLoop&) = delete;

  // From any thread; work must not throw. Nothing is done after stop().
  void post(std::function<void()> work);
  void stop();  // once all that was posted is done

 private:
  void run() noexcept;

  const std::function<double()> tick_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace millrace::serve
