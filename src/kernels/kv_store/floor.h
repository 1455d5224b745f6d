// Least work of storing K and V: every new element read once, and written once in the cache's type.
#pragma once

#include "kernels/kernel.h"
#include "kernels/kv_store/args.h"
#include "tensor/format.h"

namespace millrace::kv_store {

inline Floor floor_of(const Args& a) {
  const double kinds = a.what == Stored::both ? 2 : 1;
  const auto elems = kinds * static_cast<double>(a.n_rows * a.n_kv_heads * a.head_dim);
  return {
      .read_bytes = elems * format_of(a.x_type).block_bytes + 4.0 * static_cast<double>(a.n_rows),
      .write_bytes = elems * format_of(a.kv_type).block_bytes};
}

}  // namespace millrace::kv_store
