#pragma once

namespace millrace::quantize {

// y = x in int8 blocks of 32 with a scale each
struct Args {
  const float* x;  // f32 [n_rows][k], rows contiguous
  void* y;         // q8_row [n_rows], rows contiguous (row.h), 4-byte aligned; overlaps nothing
  long long n_rows;
  long long k;  // a multiple of 32
};

}  // namespace millrace::quantize
