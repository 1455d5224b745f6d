#pragma once

#include "tensor/dtype.h"

namespace millrace::rmsnorm {

// y[r][g][i] = x[r][g][i] / sqrt(mean_i(x[r][g][i]^2) + eps) * weight[i]
struct Args {
  const void* x;        // x_type [n_rows][n_groups][n], contiguous; may be y
  const float* weight;  // f32 [n]
  void* y;              // y_type [n_rows][n_groups][n], contiguous
  long long n_rows;
  long long n_groups;  // of a row, normed each by itself: 1, or its heads
  long long n;
  float eps;
  DType x_type;  // f32 or bf16
  DType y_type;  // f32 or bf16
};

}  // namespace millrace::rmsnorm
