// Least work of an addition: two inputs read once, the sum written once. Counted for buffers apart;
// in place the output's line is already in cache.
#pragma once

#include "kernels/add/args.h"
#include "kernels/kernel.h"
#include "tensor/format.h"

namespace millrace::add {

inline Floor floor_of(const Args& a) {
  const auto elems = static_cast<double>(a.n_rows * a.n);
  const auto b_elems = static_cast<double>(a.is_bias ? a.n : a.n_rows * a.n);
  return {.read_bytes =
              elems * format_of(a.a_type).block_bytes + b_elems * format_of(a.b_type).block_bytes,
          .write_bytes = elems * format_of(a.y_type).block_bytes,
          .f32_macs = elems};
}

}  // namespace millrace::add
