// Least work of quantize: every x read once, every row written once. Two passes over a block, the
// second from registers or L1. Arithmetic is one compare and one multiply an element.
#pragma once

#include "kernels/kernel.h"
#include "kernels/quantize/args.h"
#include "kernels/quantize/row.h"

namespace millrace::quantize {

inline Floor floor_of(const Args& a) {
  const auto elems = static_cast<double>(a.n_rows * a.k);
  return {.read_bytes = 4 * elems,
          .write_bytes = static_cast<double>(a.n_rows * row_bytes(a.k)),
          .f32_macs = elems};
}

}  // namespace millrace::quantize
