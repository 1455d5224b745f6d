#pragma once

#include "tensor/dtype.h"

namespace millrace::matmul {

// y[r][o] = sum_i x[r][i] * w[o][i]
struct Args {
  const void* w;  // w_type [n][k], in the variant's layout (plain: rows as in the file); 64-byte
                  // aligned if packed
  const void* x;  // x_type [n_rows][k], rows contiguous; block formats: q8_row on a CPU, bf16 on a
                  // device; 16-byte aligned there
  void* y;        // y_type [n_rows][n], rows contiguous; overlaps nothing
  long long n_rows;
  long long n;  // outputs
  long long k;  // a multiple of the block length of w_type and x_type
  DType w_type;
  DType x_type;  // q8_row, f32 or bf16
  DType y_type;  // f32 or bf16
};

}  // namespace millrace::matmul
