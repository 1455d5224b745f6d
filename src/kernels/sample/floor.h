// Least work of sampling: every logit and every word of a mask read once; a token, its
// log-probability and the most likely written per row. The sparse lists are a few hundred bytes and
// not counted. Arithmetic: for the log-probability one exponential (about eight multiply-adds) and
// one addition per logit. The sum at the row's own temperature is not counted: with top_k nothing
// needs it.
#pragma once

#include "kernels/kernel.h"
#include "kernels/sample/args.h"

namespace millrace::sample {

inline Floor floor_of(const Args& a) {
  const auto rows = static_cast<double>(a.n_rows), elems = rows * static_cast<double>(a.n);
  const double mask_words = a.mask != nullptr ? rows * static_cast<double>(a.mask_words) : 0;
  const double row_words =
      (a.logprob != nullptr ? 2.0 : 1.0) + 2.0 * static_cast<double>(a.max_top);
  return {.read_bytes = 4 * (elems + mask_words),
          .write_bytes = 4 * rows * row_words,
          .f32_macs = a.logprob != nullptr ? 9 * elems : 0,
          .phases = 2};
}

}  // namespace millrace::sample
