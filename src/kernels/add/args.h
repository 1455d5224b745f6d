#pragma once

#include "tensor/dtype.h"

namespace millrace::add {

// y[r][i] = a[r][i] + b[r][i], or + b[i]: a bias
struct Args {
  const void* a;  // a_type [n_rows][n], rows contiguous; may be y
  const void* b;  // b_type [n_rows][n], rows contiguous, which may be y; a bias: b_type [n]
  void* y;        // y_type [n_rows][n], rows contiguous
  long long n_rows;
  long long n;
  bool is_bias;               // b is one row for all
  DType a_type = DType::f32;  // f32 or bf16, each of the three
  DType b_type = DType::f32;
  DType y_type = DType::f32;  // that of an operand y is
};

}  // namespace millrace::add
