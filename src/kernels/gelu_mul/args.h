#pragma once

#include "tensor/dtype.h"

namespace millrace::gelu_mul {

// y[r][i] = gelu(gate[r][i]) * up[r][i], gelu(g) = g/2 * (1 + tanh(sqrt(2/pi) * (g + 0.044715
// g^3)))
struct Args {
  const void* gate;  // type [n_rows][n], rows contiguous; may be y
  const void* up;    // type [n_rows][n], rows contiguous; may be y
  void* y;           // type [n_rows][n], rows contiguous
  long long n_rows;
  long long n;
  DType type = DType::f32;  // f32 or bf16
};

}  // namespace millrace::gelu_mul
