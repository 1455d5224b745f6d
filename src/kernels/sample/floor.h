// Least work of sampling: every logit read once; a token and its log-probability written per row.
// Arithmetic: for the log-probability one exponential (about eight multiply-adds) and one addition
// per logit. The sum at the row's own temperature is not counted: with top_k nothing needs it.
#pragma once

#include "kernels/kernel.h"
#include "kernels/sample/args.h"

namespace millrace::sample {

inline Floor floor_of(const Args& a) {
  const auto elems = static_cast<double>(a.n_rows * a.n);
  return {.read_bytes = 4 * elems,
          .write_bytes = (a.logprob != nullptr ? 8.0 : 4.0) * static_cast<double>(a.n_rows),
          .f32_macs = a.logprob != nullptr ? 9 * elems : 0,
          .phases = 2};
}

}  // namespace millrace::sample
