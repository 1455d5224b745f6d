// A fused kernel against the plain calls it equals, on a device: both get the same inputs, outputs
// full of poison and guarded memory, and what both write must be the same bits; what only the plain
// calls write the fused one leaves alone.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/fusion.h"
#include "machine/machine.h"
#include "memory/device.h"

namespace millrace::lab {

struct FusedTrial {
  const Machine& machine;
  const Stream& stream;
  uint64_t seed;
};

// False: the fused kernel does not take the case on this device.
Result<bool> check_fused(const Fusion& fusion, const FusedCase& problem, const FusedTrial& trial);

}  // namespace millrace::lab
