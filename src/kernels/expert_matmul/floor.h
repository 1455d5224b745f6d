// Least work: each chosen expert's weights read once (at most as many as there are choices), the
// rows read and the outputs written once.
#pragma once

#include <algorithm>

#include "kernels/expert_matmul/args.h"
#include "kernels/kernel.h"
#include "kernels/quantize/row.h"
#include "tensor/format.h"

namespace millrace::expert_matmul {

inline Floor floor_of(const Args& a) {
  const long long choices = a.n_rows * a.n_used, read = std::min(choices, a.n_experts);
  const long long x_rows = a.x_per_choice ? choices : a.n_rows;
  const bool is_q8 = a.x_type == DType::q8_row;
  const auto x_bytes = static_cast<double>(x_rows * (is_q8 ? quantize::row_bytes(a.k) : 4 * a.k));
  const auto macs = static_cast<double>(choices * a.n * a.k);
  return {.read_bytes = static_cast<double>(bytes_of(a.w_type, read * a.n * a.k)) + x_bytes,
          .write_bytes = 4.0 * static_cast<double>(choices * a.n),
          .i8_macs = is_q8 ? macs : 0,
          .f32_macs = is_q8 ? 0 : macs};
}

}  // namespace millrace::expert_matmul
