#include "base/philox.h"

#include <cmath>

namespace millrace {

namespace {
#include "base/philox_body.inc"
}  // namespace

std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter_lo, uint64_t counter_hi) {
  unsigned c[4] = {static_cast<unsigned>(counter_lo), static_cast<unsigned>(counter_lo >> 32),
                   static_cast<unsigned>(counter_hi), static_cast<unsigned>(counter_hi >> 32)};
  philox_rounds(c, static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32));
  return {c[0], c[1], c[2], c[3]};
}

float philox_uniform(uint64_t seed, uint64_t position, uint32_t choice) {
  return philox_draw(seed, position, choice);
}

uint32_t Rng::next_u32() {
  if (used_ == 4) {
    block_ = philox(seed_, counter_++, stream_);
    used_ = 0;
  }
  return block_[used_++];
}

float Rng::normal() {
  // Box-Muller; only test data comes from here, so libm is allowed.
  const double u = (next_u32() + 0.5) * 0x1p-32, v = next_u32() * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) *
                            std::cos(2.0 * 3.14159265358979323846 * v));
}

}  // namespace millrace
