// Least work of sampling: every logit read once; a token and its log-probability written per row.
// Arithmetic: one exponential (about eight multiply-adds) and one addition per logit for the sum;
// a second set where the temperature is not 1 is the definition's, so it is counted.
#pragma once

#include "kernels/kernel.h"
#include "kernels/sample/args.h"

namespace millrace::sample {

inline Floor floor_of(const Args& a) {
  const auto elems = static_cast<double>(a.n_rows * a.n);
  return {.read_bytes = 4 * elems,
          .write_bytes = 8.0 * static_cast<double>(a.n_rows),
          .f32_macs = 2 * 9 * elems,
          .phases = 2};
}

}  // namespace millrace::sample
