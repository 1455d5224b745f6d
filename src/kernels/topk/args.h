#pragma once

namespace millrace::topk {

// For each row, the k largest of n in descending order: values[r][j] = x[r][indices[r][j]].
struct Args {
  const float* x;  // f32 [n_rows][n], rows contiguous
  float* values;   // f32 [n_rows][k]; never x
  int* indices;    // i32 [n_rows][k], each in [0, n)
  long long n_rows;
  long long n;  // below 2^31
  long long k;  // 1 to n
};

}  // namespace millrace::topk
