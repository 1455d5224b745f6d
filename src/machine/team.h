// A team of lanes made for decode: one whole step runs inside Team::run, every lane executing the
// same function over a static partition, with barriers where data crosses lanes. Lanes are pinned
// where allowed and carry the same MXCSR. Nothing is allocated after construction.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace millrace {

// Spin-then-park: a waiter spins for a bounded time (hot lanes meet in under 0.3 us), then sleeps
// on a futex, so a team larger than its cores makes progress.
class Barrier {
 public:
  explicit Barrier(int n_lanes, bool spin) : n_lanes_(n_lanes), spin_(spin) {}
  void wait();

 private:
  const int n_lanes_;
  const bool spin_;
  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
};

struct Lane {
  int index = 0;
  int count = 1;
  Barrier* barrier = nullptr;
};

class Team {
 public:
  // cpus: where to pin lane i (cpus[i]); empty means unpinned.
  explicit Team(int n_lanes, std::vector<int> cpus = {});
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return n_lanes_; }

  // Runs body(lane) on every lane, the caller's thread being lane 0, and returns when all are done.
  template <class Body>
  void run(Body& body) {
    dispatch([](void* b, Lane& lane) { (*static_cast<Body*>(b))(lane); }, &body);
  }
  template <class Body>
  void run(Body&& body) {
    Body& named = body;
    run(named);
  }

 private:
  using Call = void (*)(void* body, Lane& lane);
  void dispatch(Call call, void* body);
  void work(int index) noexcept;

  const int n_lanes_;
  const std::vector<int> cpus_;
  Barrier barrier_;
  std::vector<std::thread> threads_;
  Call call_ = nullptr;
  void* body_ = nullptr;
  bool stopping_ = false;
};

// Sets the MXCSR every lane runs with: round to nearest, no flush to zero, exceptions masked.
void set_lane_mxcsr();

// The half-open share [begin, end) of n items that lane `lane` of `count` owns, in units of
// `grain`.
struct Share {
  int64_t begin, end;
};
Share share_of(int64_t n, int lane, int count, int64_t grain = 1);

}  // namespace millrace
