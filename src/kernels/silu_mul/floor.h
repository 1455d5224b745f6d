// Least work of silu_mul: gate and up read once, y written once. Arithmetic: an exponential is
// about eight multiply-adds, then a division (counted as four) and the product.
#pragma once

#include "kernels/kernel.h"
#include "kernels/silu_mul/args.h"
#include "tensor/format.h"

namespace millrace::silu_mul {

inline Floor floor_of(const Args& a) {
  const auto elems = static_cast<double>(a.n_rows * a.n);
  const double bytes = elems * format_of(a.type).block_bytes;
  return {.read_bytes = 2 * bytes, .write_bytes = bytes, .f32_macs = 13 * elems};
}

}  // namespace millrace::silu_mul
