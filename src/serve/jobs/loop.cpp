#include "serve/jobs/loop.h"

#include <chrono>
#include <utility>

namespace millrace::serve {

JobLoop::JobLoop(std::function<double()> tick)
    : tick_(std::move(tick)), thread_([this] { run(); }) {}

JobLoop::~JobLoop() {
  stop();
}

void JobLoop::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    waiting_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void JobLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void JobLoop::run() noexcept {
  double pause_s = 0;
  std::unique_lock lock(mutex_);
  while (!stopping_ || !waiting_.empty()) {
    changed_.wait_for(lock, std::chrono::duration<double>(pause_s),
                      [&] { return stopping_ || !waiting_.empty(); });
    std::function<void()> work;
    if (!waiting_.empty()) {
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    lock.unlock();
    if (work) work();
    work = nullptr;  // what it holds goes outside the lock
    pause_s = tick_();
    lock.lock();
  }
}

}  // namespace millrace::serve
