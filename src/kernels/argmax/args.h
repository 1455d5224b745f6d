#pragma once

namespace millrace::argmax {

// For each row, the index of its largest element.
struct Args {
  const float* x;  // f32 [n_rows][n], rows contiguous
  int* index;      // i32 [n_rows], each in [0, n)
  long long n_rows;
  long long n;  // below 2^31
};

}  // namespace millrace::argmax
