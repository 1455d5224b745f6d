#pragma once

namespace millrace::silu_mul {

// y[r][i] = silu(gate[r][i]) * up[r][i], silu(g) = g / (1 + exp(-g))
struct Args {
  const float* gate;  // f32 [n_rows][n], rows contiguous; may be y
  const float* up;    // f32 [n_rows][n], rows contiguous; may be y
  float* y;           // f32 [n_rows][n], rows contiguous
  long long n_rows;
  long long n;
};

}  // namespace millrace::silu_mul
