#pragma once

namespace millrace::add {

// y[r][i] = a[r][i] + b[r][i], or + b[i]: a bias
struct Args {
  const float* a;  // f32 [n_rows][n], rows contiguous; may be y
  const float* b;  // f32 [n_rows][n], rows contiguous, which may be y; a bias: f32 [n]
  float* y;        // f32 [n_rows][n], rows contiguous
  long long n_rows;
  long long n;
  bool is_bias;  // b is one row for all
};

}  // namespace millrace::add
