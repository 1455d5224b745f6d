// Least work of an embedding gather: the gathered rows and the ids read once, y written once. The
// table beyond those rows is not touched. Rows with the same id are counted each: they may be all
// different.
#pragma once

#include "kernels/embedding/args.h"
#include "kernels/kernel.h"
#include "tensor/format.h"

namespace millrace::embedding {

inline Floor floor_of(const Args& a) {
  const auto rows = static_cast<double>(a.n_rows);
  const double elems = rows * static_cast<double>(a.n);
  return {.read_bytes = rows * (static_cast<double>(bytes_of(a.table_type, a.n)) + 4),
          .write_bytes = 4 * elems,
          .f32_macs = is_block_format(a.table_type) || a.scale != 1 ? elems : 0};
}

}  // namespace millrace::embedding
