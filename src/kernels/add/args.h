#pragma once

namespace millrace::add {

// y[r][i] = a[r][i] + b[r][i]
struct Args {
  const float* a;  // f32 [n_rows][n], rows contiguous; may be y
  const float* b;  // f32 [n_rows][n], rows contiguous; may be y
  float* y;        // f32 [n_rows][n], rows contiguous
  long long n_rows;
  long long n;
};

}  // namespace millrace::add
