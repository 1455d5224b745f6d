// Least work of top-k: every x read once, k values and k indices written. Comparisons are not
// counted; a selection needs about one per element, eight of which fit in an AVX2 instruction.
// Two dependent phases: no element can be placed before all have been seen.
#pragma once

#include "kernels/kernel.h"
#include "kernels/topk/args.h"

namespace millrace::topk {

inline Floor floor_of(const Args& a) {
  return {.read_bytes = 4.0 * static_cast<double>(a.n_rows * a.n),
          .write_bytes = 8.0 * static_cast<double>(a.n_rows * a.k),
          .phases = 2};
}

}  // namespace millrace::topk
