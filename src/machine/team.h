// A team of lanes made for decode: one whole step runs inside Team::run, every lane executing the
// same function over a static partition, with barriers where data crosses lanes. Lanes are pinned
// where allowed and carry the same MXCSR. Nothing is allocated after construction.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "machine/pin.h"

namespace millrace {

// A dissemination barrier: in round r a lane signals the lane 2^r after it and waits for the one
// 2^r before it, so two lanes meet in one exchange of cache lines and n lanes in log2(n). A waiter
// spins for a bounded time, then parks on a futex; nobody makes a system call to wake lanes that
// are not parked.
class Barrier {
 public:
  // spin: false when lanes share CPUs; a waiter then yields its CPU at once.
  Barrier(int n_lanes, bool spin);
  void wait(int lane);

 private:
  // Twice 64: the prefetcher fetches lines in pairs.
  struct alignas(128) Signal {
    std::atomic<uint32_t> word{0};  // the sender's epoch times two, plus one when a lane is parked
  };
  struct alignas(128) Progress {
    uint32_t epoch = 0;  // how often this lane has been here; its own alone
  };
  void await(std::atomic<uint32_t>& word, uint32_t target) const;

  const int n_lanes_;
  const int n_rounds_;
  const bool spin_;
  std::unique_ptr<Signal[]> signals_;     // [lane][round]: to that lane
  std::unique_ptr<Progress[]> progress_;  // [lane]
};

struct Lane {
  int index = 0;
  int count = 1;
  Barrier* barrier = nullptr;

  void sync() const { barrier->wait(index); }
};

// Belongs to the thread that makes it: that thread calls run(), is lane 0, and destroys it. While
// the team lives the thread is pinned like the other lanes, and so is every thread it starts.
class Team {
 public:
  // cpus: where to pin lane i (cpus[i]); nothing is pinned when there are fewer than lanes. Where
  // the system refuses to start that many threads the team is smaller: ask size().
  explicit Team(int n_lanes, std::vector<int> cpus = {});
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return n_lanes_; }

  // Runs body(lane) on every lane, the caller's thread being lane 0, and returns when all are done.
  // The caller's own MXCSR is put back.
  template <class Body>
  void run(Body&& body) {
    using Type = std::remove_reference_t<Body>;
    dispatch([](void* b, Lane& lane) { (*static_cast<Type*>(b))(lane); },
             const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* body, Lane& lane);
  void start_threads(int n_lanes);
  void dispatch(Call call, void* body);
  void work(int index) noexcept;

  int n_lanes_ = 1;
  const std::vector<int> cpus_;
  std::vector<std::thread> threads_;
  std::atomic<bool> formed_{false};  // n_lanes_ and barrier_ are final
  std::optional<Barrier> barrier_;
  std::optional<ScopedPin> caller_pin_;
  Call call_ = nullptr;
  void* body_ = nullptr;
  bool stopping_ = false;
};

// The MXCSR every lane runs with: round to nearest, no flush to zero, exceptions masked.
inline constexpr unsigned kLaneMxcsr = 0x1f80;

// The half-open share [begin, end) of n items that lane `lane` of `count` owns, in units of
// `grain`.
struct Share {
  int64_t begin, end;
};
Share share_of(int64_t n, int lane, int count, int64_t grain = 1);

}  // namespace millrace
