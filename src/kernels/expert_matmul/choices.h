// The choices of a batch, one matmul row each, expert by expert, so that an expert's weights are
// still in cache for the next row that chose it. Lanes split a product's outputs.
#pragma once

#include "kernels/expert_matmul/args.h"
#include "kernels/kernel.h"
#include "kernels/matmul/args.h"
#include "kernels/quantize/row.h"
#include "tensor/format.h"

namespace millrace::expert_matmul {

// The stack as one matrix, without rows.
inline matmul::Args stack_of(const Args& a) {
  return {.w = a.w,
          .x = nullptr,
          .y = nullptr,
          .n_rows = 1,
          .n = a.n_experts * a.n,
          .k = a.k,
          .w_type = a.w_type,
          .x_type = a.x_type,
          .y_type = DType::f32};
}

// The product of one choice but for its weight.
inline matmul::Args product_of(const Args& a, long long choice) {
  const long long x_row = a.x_per_choice ? choice : choice / a.n_used;
  const long long x_bytes = a.x_type == DType::q8_row ? quantize::row_bytes(a.k) : 4 * a.k;
  matmul::Args m = stack_of(a);
  m.n = a.n;
  m.x = static_cast<const char*>(a.x) + x_row * x_bytes;
  m.y = a.y + choice * a.n;
  return m;
}

// Bytes from one expert to the next in a layout of the stack.
inline long long expert_bytes(const Args& a, const Layout* layout) {
  if (layout == nullptr) return static_cast<long long>(bytes_of(a.w_type, a.n * a.k));
  const matmul::Args one = product_of(a, 0);
  return static_cast<long long>(layout->bytes(&one));
}

template <Status (*kMatmul)(const matmul::Args&, Exec&)>
Status run_choices(const Args& a, Exec& exec, const Layout* layout) {
  const long long n_choices = a.n_rows * a.n_used, w_bytes = expert_bytes(a, layout);
  for (int expert = 0; expert < a.n_experts; ++expert)
    for (long long choice = 0; choice < n_choices; ++choice)
      if (a.experts[choice] == expert) {
        matmul::Args product = product_of(a, choice);
        product.w = static_cast<const char*>(a.w) + expert * w_bytes;
        if (Status status = kMatmul(product, exec); !status.ok()) return status;
      }
  return {};
}

}  // namespace millrace::expert_matmul
