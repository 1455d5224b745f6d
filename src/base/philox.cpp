#include "base/philox.h"

#include <cmath>

namespace millrace {

std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter_lo, uint64_t counter_hi) {
  constexpr uint32_t kMul0 = 0xD2511F53, kMul1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  std::array<uint32_t, 4> c = {
      static_cast<uint32_t>(counter_lo), static_cast<uint32_t>(counter_lo >> 32),
      static_cast<uint32_t>(counter_hi), static_cast<uint32_t>(counter_hi >> 32)};
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{kMul0} * c[0], p1 = uint64_t{kMul1} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(p0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return c;
}

float philox_uniform(uint64_t seed, uint64_t position, uint32_t choice) {
  return static_cast<float>(philox(seed, position, choice)[0] >> 8) * 0x1p-24f;
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
