#pragma once

#include "tensor/dtype.h"

namespace millrace::rmsnorm {

// y[r][i] = x[r][i] / sqrt(mean_i(x[r][i]^2) + eps) * weight[i]
struct Args {
  const void* x;        // x_type [n_rows][n], rows contiguous; may be y
  const float* weight;  // f32 [n]
  void* y;              // y_type [n_rows][n], rows contiguous
  long long n_rows;
  long long n;
  float eps;
  DType x_type;  // f32 or bf16
  DType y_type;  // f32 or bf16
};

}  // namespace millrace::rmsnorm
