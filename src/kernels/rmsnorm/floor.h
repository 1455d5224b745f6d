// Least work of RMS norm: every x read once, every y written once, the weight read once (it is
// shared by all rows). A row is two dependent passes over x, but the second finds it in cache, so
// bytes count once. Arithmetic is one multiply-add per element for the sum and two multiplies for
// the result.
#pragma once

#include "kernels/kernel.h"
#include "kernels/rmsnorm/args.h"
#include "tensor/format.h"

namespace millrace::rmsnorm {

inline Floor floor_of(const Args& a) {
  const auto elems = static_cast<double>(a.n_rows * a.n_groups * a.n);
  return {.read_bytes = elems * format_of(a.x_type).block_bytes + 4.0 * static_cast<double>(a.n),
          .write_bytes = elems * format_of(a.y_type).block_bytes,
          .f32_macs = 3 * elems};
}

}  // namespace millrace::rmsnorm
