#include "machine/team.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <system_error>

#include "base/check.h"
#include "base/clock.h"
#include "machine/cpu.h"

namespace millrace {
namespace {

// A parked lane takes some 50 us to come back on a virtual machine. Spinning for a few times that
// bridges the gap between two steps; an idle team still costs no CPU.
constexpr int64_t kSpinNs = 200'000;
constexpr int kSpinsPerClockRead = 64;  // about 3 us of pauses
// A pause is 50 ns on the machines at hand: asking without one at first took a hot meeting of two
// lanes from 190 to 170 ns.
constexpr int kEagerSpins = 16;
// Lanes that share CPUs: a yield hands the CPU to a lane that is late, and then it is worth asking
// again; past these few the late lane is not runnable and this one had better sleep.
constexpr int kYields = 16;

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation | FUTEX_PRIVATE_FLAG,
                 value, nullptr, nullptr, 0);
}

// Epochs wrap, so they are compared by their distance.
bool reached(uint32_t word, uint32_t target) {
  return static_cast<int32_t>(word - target) >= 0;
}

bool spin_briefly(const std::atomic<uint32_t>& word, uint32_t target) {
  for (int i = 0; i < kSpinsPerClockRead; ++i) {
    if (reached(word.load(std::memory_order_acquire), target)) return true;
    if (i >= kEagerSpins) _mm_pause();
  }
  return false;
}

bool spin_until(const std::atomic<uint32_t>& word, uint32_t target) {
  if (spin_briefly(word, target)) return true;  // hot lanes meet here, before any clock is read
  const int64_t end = now_ns() + kSpinNs;
  do {
    if (spin_briefly(word, target)) return true;
  } while (now_ns() < end);
  return false;
}

bool yield_until(const std::atomic<uint32_t>& word, uint32_t target) {
  for (int i = 0; i < kYields; ++i) {
    if (reached(word.load(std::memory_order_acquire), target)) return true;
    sched_yield();
  }
  return false;
}

// Marks the word so that the sender knows to wake, and sleeps.
void park_until(std::atomic<uint32_t>& word, uint32_t target) {
  uint32_t seen = word.load(std::memory_order_acquire);
  while (!reached(seen, target)) {
    if (seen % 2 == 0 && !word.compare_exchange_strong(seen, seen + 1, std::memory_order_acquire))
      continue;
    futex(word, FUTEX_WAIT, seen | 1);
    seen = word.load(std::memory_order_acquire);
  }
}

// What a user sends to stop the program belongs to the thread that waits for it, not to a lane.
void leave_signals_to_others() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

Barrier::Barrier(int n_lanes, bool spin)
    : n_lanes_(n_lanes),
      n_rounds_(std::bit_width(static_cast<unsigned>(n_lanes - 1))),
      spin_(spin),
      signals_(std::make_unique<Signal[]>(static_cast<size_t>(n_lanes * n_rounds_))),
      progress_(std::make_unique<Progress[]>(static_cast<size_t>(n_lanes))) {}

void Barrier::wait(int lane) {
  const uint32_t target = ++progress_[static_cast<size_t>(lane)].epoch * 2;
  for (int round = 0; round < n_rounds_; ++round) {
    const int ahead = lane + (1 << round), to = ahead < n_lanes_ ? ahead : ahead - n_lanes_;
    std::atomic<uint32_t>& sent = signals_[static_cast<size_t>(to * n_rounds_ + round)].word;
    if (sent.exchange(target, std::memory_order_acq_rel) % 2 == 1) futex(sent, FUTEX_WAKE, 1);
    await(signals_[static_cast<size_t>(lane * n_rounds_ + round)].word, target);
  }
}

void Barrier::await(std::atomic<uint32_t>& word, uint32_t target) const {
  if (spin_ ? spin_until(word, target) : yield_until(word, target)) return;
  park_until(word, target);
}

Team::Team(int n_lanes, std::vector<int> cpus)
    : cpus_(static_cast<int>(cpus.size()) < n_lanes ? std::vector<int>() : std::move(cpus)) {
  MILLRACE_CHECK(n_lanes >= 1, "a team of {} lanes", n_lanes);
  const auto n_cpus = static_cast<int>(cpus_allowed_by_affinity().size());
  start_threads(n_lanes);
  barrier_.emplace(n_lanes_, !cpus_.empty() || n_lanes_ <= n_cpus);
  if (!cpus_.empty()) caller_pin_.emplace(cpus_[0]);
  formed_.store(true, std::memory_order_release);
  formed_.notify_all();
}

void Team::start_threads(int n_lanes) {
  threads_.reserve(static_cast<size_t>(n_lanes - 1));
  try {
    for (; n_lanes_ < n_lanes; ++n_lanes_) threads_.emplace_back(&Team::work, this, n_lanes_);
  } catch (const std::system_error&) {
    // A limit on threads: the lanes there are will do.
  }
}

Team::~Team() {
  stopping_ = true;
  barrier_->wait(0);
  for (auto& thread : threads_) thread.join();
}

void Team::dispatch(Call call, void* body) {
  call_ = call;
  body_ = body;
  const unsigned mxcsr = _mm_getcsr();
  _mm_setcsr(kLaneMxcsr);
  barrier_->wait(0);
  Lane lane{0, n_lanes_, &*barrier_};
  // An exception of lane 0 ends the program as one of any other lane does: unwinding from here
  // would leave the others at a barrier.
  [&]() noexcept { call(body, lane); }();
  barrier_->wait(0);
  _mm_setcsr(mxcsr);
}

void Team::work(int index) noexcept {
  leave_signals_to_others();
  formed_.wait(false, std::memory_order_acquire);
  std::optional<ScopedPin> pin;
  if (!cpus_.empty()) pin.emplace(cpus_[static_cast<size_t>(index)]);
  for (;;) {
    barrier_->wait(index);
    if (stopping_) return;
    _mm_setcsr(kLaneMxcsr);
    Lane lane{index, n_lanes_, &*barrier_};
    call_(body_, lane);
    barrier_->wait(index);
  }
}

Share share_of(int64_t n, int lane, int count, int64_t grain) {
  const int64_t units = (n + grain - 1) / grain;
  const int64_t begin = units * lane / count * grain, end = units * (lane + 1) / count * grain;
  return {std::min(begin, n), std::min(end, n)};
}

}  // namespace millrace
