// Random weights in any type, made directly in its blocks: uniform codes under a scale that gives
// the wanted standard deviation. A row is a pure function of (seed, tensor, row), so it does not
// matter who makes it. For models whose shapes count and whose words do not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace millrace {

struct RandomRow {
  uint64_t seed = 0;
  uint64_t tensor = 0;  // which tensor of the model
  uint64_t row = 0;
  float deviation = 1;
};

// `elems` must be whole blocks of `type`, a float type or a block format.
void fill_random(DType type, const RandomRow& row, std::byte* out, int64_t elems);

}  // namespace millrace
