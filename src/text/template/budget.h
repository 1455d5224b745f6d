// What a render may use: steps (time) and live bytes of values. Whatever walks a string or a list
// pays for the bytes it touches before it walks them, so that no single call runs long and no loop
// over cheap calls runs for ever. A step stands for tens of nanoseconds: a node of the tree.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace millrace::jinja {

// Live bytes of a render's values against their limit.
struct Meter {
  size_t live = 0;
  size_t limit = SIZE_MAX;
};

// The share of a meter that one value holds, given back with it.
class Charge {
 public:
  Charge() = default;
  Charge(Meter* meter, size_t bytes) { set(meter, bytes); }
  ~Charge() {
    if (meter_ != nullptr) meter_->live -= bytes_;
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  // Once, on an empty one.
  void set(Meter* meter, size_t bytes) {
    meter_ = meter;
    bytes_ = bytes;
    if (meter_ != nullptr) meter_->live += bytes_;
  }

 private:
  Meter* meter_ = nullptr;
  size_t bytes_ = 0;
};

struct Budget {
  Meter memory;
  int64_t steps = INT64_MAX;
  const std::atomic<bool>* stop = nullptr;  // set by whoever wants the render to end

  void spend(size_t n) {
    const auto more = static_cast<int64_t>(n);
    steps = more < 0 || steps < more ? -1 : steps - more;
  }
  // Copied, compared or searched whole, as memcpy() and its kin do it.
  void spend_bytes(size_t n) { spend(n / 64); }
  // Looked at character by character.
  void spend_points(size_t n) { spend(n / 4); }

  bool stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
  bool spent() const { return steps < 0 || memory.live > memory.limit || stopped(); }
  size_t room() const { return memory.live < memory.limit ? memory.limit - memory.live : 0; }
};

}  // namespace millrace::jinja
