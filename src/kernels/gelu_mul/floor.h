// Least work of gelu_mul: gate and up read once, y written once. Arithmetic: three operations for
// the exponent, an exponential of about eight multiply-adds, then a division (counted as four) and
// the product.
#pragma once

#include "kernels/gelu_mul/args.h"
#include "kernels/kernel.h"

namespace millrace::gelu_mul {

inline Floor floor_of(const Args& a) {
  const auto elems = static_cast<double>(a.n_rows * a.n);
  const double each = a.type == DType::bf16 ? 2 : 4;
  return {.read_bytes = 2 * each * elems, .write_bytes = each * elems, .f32_macs = 16 * elems};
}

}  // namespace millrace::gelu_mul
