// Least work: every expert's row and its weight read once, the sum written once.
#pragma once

#include "kernels/expert_sum/args.h"
#include "kernels/kernel.h"

namespace millrace::expert_sum {

inline Floor floor_of(const Args& a) {
  const auto elems = static_cast<double>(a.n_rows * a.n_used * a.n);
  return {.read_bytes = 4 * elems + 4.0 * static_cast<double>(a.n_rows * a.n_used),
          .write_bytes = 4.0 * static_cast<double>(a.n_rows * a.n),
          .f32_macs = elems};
}

}  // namespace millrace::expert_sum
