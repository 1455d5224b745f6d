// Least work of the rotary embedding: every x read once and every y written once, a position per
// row, the frequencies once (shared by all rows). Four multiply-adds a pair; the sines are counted
// as nothing, since a row's are shared by its heads.
#pragma once

#include "kernels/kernel.h"
#include "kernels/rope/args.h"
#include "tensor/format.h"

namespace millrace::rope {

inline Floor floor_of(const Args& a) {
  const auto elems = static_cast<double>(a.n_rows * a.n_heads * a.head_dim);
  const double bytes = elems * format_of(a.type).block_bytes;
  return {.read_bytes = bytes + 4.0 * static_cast<double>(a.n_rows + a.rot_dim),
          .write_bytes = bytes,
          .f32_macs = 2.0 * static_cast<double>(a.n_rows * a.n_heads * a.rot_dim)};
}

}  // namespace millrace::rope
