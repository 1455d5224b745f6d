#pragma once

namespace millrace::expert_sum {

// y[r][i] = sum_j weights[r][j] * x[r][j][i]
struct Args {
  const float* x;        // f32 [n_rows][n_used][n], contiguous
  const float* weights;  // f32 [n_rows][n_used]
  float* y;              // f32 [n_rows][n], contiguous; overlaps nothing
  long long n_rows;
  long long n_used;
  long long n;
  bool normalise;  // the weights of a row are first divided by their sum
};

}  // namespace millrace::expert_sum
