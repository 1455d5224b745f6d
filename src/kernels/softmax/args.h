#pragma once

namespace millrace::softmax {

// y[r][i] = exp(scale * (x[r][i] - max_i x[r][i])) / sum of the same over i
struct Args {
  const float* x;  // f32 [n_rows][n], rows contiguous; may be y
  float* y;        // f32 [n_rows][n], rows contiguous
  long long n_rows;
  long long n;
  float scale;  // above 0 and finite: 1 / temperature, or an attention scale
};

}  // namespace millrace::softmax
