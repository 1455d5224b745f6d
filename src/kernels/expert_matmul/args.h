#pragma once

#include "tensor/dtype.h"

namespace millrace::expert_matmul {

// Each row times the matrices of the experts chosen for it:
//   y[r][j] = w[experts[r][j]] x[r], or x[r][j] where every choice has a row of its own
struct Args {
  const void* w;  // w_type [n_experts][n][k], in the variant's layout of the stack; 64-byte aligned
                  // if packed
  const void* x;  // x_type [n_rows][k] or [n_rows][n_used][k], rows contiguous
  const int* experts;  // i32 [n_rows][n_used], each in [0, n_experts)
  float* y;            // f32 [n_rows][n_used][n], contiguous; overlaps nothing
  long long n_rows;
  long long n_used;
  long long n_experts;
  long long n;  // outputs of one expert, a multiple of 16
  long long k;  // a multiple of the block length of w_type and x_type
  DType w_type;
  DType x_type;  // q8_row or f32, as for matmul
  bool x_per_choice;
};

}  // namespace millrace::expert_matmul
