// Least work of the matrix product: every weight and activation byte read once as stored, every
// output written once, one multiply-add per (row, output, k) in the type the operands are stored
// in. One row is bound by the weight's bytes, hundreds of rows by the multiply-adds; between them
// both count. One phase: outputs do not depend on each other.
#pragma once

#include "kernels/kernel.h"
#include "kernels/matmul/args.h"
#include "tensor/format.h"

namespace millrace::matmul {

inline double stored_bytes(DType type, long long rows, long long elems) {
  const Format& f = format_of(type);
  return static_cast<double>(rows) * static_cast<double>(elems) * f.block_bytes / f.block_elems;
}

inline Floor floor_of(const Args& a) {
  const double macs =
      static_cast<double>(a.n_rows) * static_cast<double>(a.n) * static_cast<double>(a.k);
  Floor floor{
      .read_bytes = stored_bytes(a.w_type, a.n, a.k) + stored_bytes(a.x_type, a.n_rows, a.k),
      .write_bytes = stored_bytes(a.y_type, a.n_rows, a.n)};
  if (a.x_type == DType::q8_row)
    floor.i8_macs = macs;
  else if (a.x_type == DType::bf16)
    floor.bf16_macs = macs;
  else
    floor.f32_macs = macs;
  return floor;
}

}  // namespace millrace::matmul
