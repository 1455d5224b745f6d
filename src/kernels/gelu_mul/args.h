#pragma once

namespace millrace::gelu_mul {

// y[r][i] = gelu(gate[r][i]) * up[r][i], gelu(g) = g/2 * (1 + tanh(sqrt(2/pi) * (g + 0.044715
// g^3)))
struct Args {
  const float* gate;  // f32 [n_rows][n], rows contiguous; may be y
  const float* up;    // f32 [n_rows][n], rows contiguous; may be y
  float* y;           // f32 [n_rows][n], rows contiguous
  long long n_rows;
  long long n;
};

}  // namespace millrace::gelu_mul
