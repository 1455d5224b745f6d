// Philox 4x32-10 (Salmon et al., 2011): random numbers by counter. The draw for (seed, position,
// choice) is a pure function of the three, so a sample does not depend on what else was drawn, or
// by whom.
#pragma once

#include <array>
#include <cstdint>

namespace millrace {

std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter_lo, uint64_t counter_hi = 0);

// Uniform in [0, 1), 24 bits: exactly representable in f32. `choice` tells the completions of one
// request apart.
float philox_uniform(uint64_t seed, uint64_t position, uint32_t choice = 0);

// A stream over one seed, for filling test data.
class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}
  uint32_t next_u32();
  uint64_t next_u64() { return (uint64_t{next_u32()} << 32) | next_u32(); }
  uint64_t below(uint64_t n) { return n == 0 ? 0 : next_u64() % n; }
  float uniform() { return static_cast<float>(next_u32() >> 8) * 0x1p-24f; }
  float uniform(float lo, float hi) { return lo + (hi - lo) * uniform(); }
  float normal();

 private:
  uint64_t seed_, stream_, counter_ = 0;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace millrace
