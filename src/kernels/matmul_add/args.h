#pragma once

#include "tensor/dtype.h"

namespace millrace::matmul_add {

// y[r][o] = a[r][o] + sum_i x[r][i] * w[o][i]: matmul, then add, for few rows.
struct Args {
  const void* w;   // w_type [n][k] in layout mma16
  const void* x;   // bf16 [n_rows][k], 16-byte aligned
  const float* a;  // f32 [n_rows][n]; may be y
  float* y;        // f32 [n_rows][n]; overlaps neither w nor x
  long long n_rows;
  long long n;
  long long k;   // a multiple of 16; of its block where w_type has one
  DType w_type;  // bf16, q8_0, q4_0, q4_k or q6_k
};

}  // namespace millrace::matmul_add
