#include "machine/team.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"

namespace millrace {
namespace {

// About 50 us of spinning on the machines at hand: far past any honest gap between two lanes of a
// hot step, and short enough that an idle team costs no CPU.
constexpr int kSpins = 4000;

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr,
          0);
}

void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr,
          nullptr, 0);
}

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  // Refusal (a container without the right) is not an error: the lane runs unpinned.
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

bool fits_cores(int n_lanes) {
  return n_lanes <= static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

void Barrier::wait() {
  if (n_lanes_ == 1) return;
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(n_lanes_)) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    futex_wake_all(generation_);
    return;
  }
  for (int i = 0; spin_ && i < kSpins; ++i) {
    if (generation_.load(std::memory_order_acquire) != generation) return;
    _mm_pause();
  }
  while (generation_.load(std::memory_order_acquire) == generation)
    futex_wait(generation_, generation);
}

void set_lane_mxcsr() {
  _mm_setcsr(0x1f80);
}

Team::Team(int n_lanes, std::vector<int> cpus)
    : n_lanes_(n_lanes), cpus_(std::move(cpus)), barrier_(n_lanes, fits_cores(n_lanes)) {
  MILLRACE_CHECK(n_lanes >= 1, "a team of {} lanes", n_lanes);
  for (int i = 1; i < n_lanes_; ++i) threads_.emplace_back([this, i] { work(i); });
}

Team::~Team() {
  stopping_ = true;
  barrier_.wait();
  for (auto& thread : threads_) thread.join();
}

void Team::dispatch(Call call, void* body) {
  call_ = call;
  body_ = body;
  set_lane_mxcsr();
  barrier_.wait();
  Lane lane{0, n_lanes_, &barrier_};
  call(body, lane);
  barrier_.wait();
}

void Team::work(int index) noexcept {
  if (static_cast<size_t>(index) < cpus_.size()) pin_to(cpus_[static_cast<size_t>(index)]);
  set_lane_mxcsr();
  for (;;) {
    barrier_.wait();
    if (stopping_) return;
    Lane lane{index, n_lanes_, &barrier_};
    call_(body_, lane);
    barrier_.wait();
  }
}

Share share_of(int64_t n, int lane, int count, int64_t grain) {
  const int64_t units = (n + grain - 1) / grain;
  const int64_t begin = units * lane / count * grain, end = units * (lane + 1) / count * grain;
  return {std::min(begin, n), std::min(end, n)};
}

}  // namespace millrace
