#pragma once

#include "tensor/dtype.h"

namespace millrace::silu_mul {

// y[r][i] = silu(gate[r][i]) * up[r][i], silu(g) = g / (1 + exp(-g))
struct Args {
  const void* gate;  // type [n_rows][n], rows contiguous; may be y
  const void* up;    // type [n_rows][n], rows contiguous; may be y
  void* y;           // type [n_rows][n], rows contiguous
  long long n_rows;
  long long n;
  DType type = DType::f32;  // f32 or bf16
};

}  // namespace millrace::silu_mul
