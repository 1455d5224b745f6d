// What the lanes of a team did in a Program, call by call: when each began and ended a call, and
// the wait at the barrier after it. Every lane writes into memory of its own that was there before
// the step; what no longer fits is counted, not written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

struct TraceSpan {
  enum class What : unsigned char { call, wait };
  int64_t begin_ns = 0, end_ns = 0;
  uint32_t call = 0;  // its place in the Program
  What what = What::call;
};

class Trace {
 public:
  // Room for so many spans of each lane.
  Trace(int n_lanes, size_t n_spans) : lanes_(static_cast<size_t>(n_lanes)) {
    for (Spans& lane : lanes_) lane.spans.resize(n_spans);
  }

  int n_lanes() const { return static_cast<int>(lanes_.size()); }
  std::span<const TraceSpan> lane(int i) const {
    const Spans& lane = lanes_[static_cast<size_t>(i)];
    return {lane.spans.data(), lane.n};
  }
  size_t n_lost() const {
    size_t n = 0;
    for (const Spans& lane : lanes_) n += lane.n_lost;
    return n;
  }
  void clear() {
    for (Spans& lane : lanes_) lane.n = lane.n_lost = 0;
  }

  // By that lane alone.
  void add(int lane, const TraceSpan& span) {
    Spans& to = lanes_[static_cast<size_t>(lane)];
    if (to.n == to.spans.size())
      ++to.n_lost;
    else
      to.spans[to.n++] = span;
  }

 private:
  struct alignas(128) Spans {  // lanes share no cache line
    std::vector<TraceSpan> spans;
    size_t n = 0, n_lost = 0;
  };
  std::vector<Spans> lanes_;
};

}  // namespace millrace
