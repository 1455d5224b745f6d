#pragma once

#include "tensor/dtype.h"

namespace millrace::embedding {

// y[r] = scale * table[ids[r]]
struct Args {
  const void*
      table;  // table_type [n_vocab][n], rows as in the file, aligned to 2 bytes or its element
  const int* ids;  // i32 [n_rows]
  float* y;        // f32 [n_rows][n], rows contiguous; overlaps nothing
  long long n_rows;
  long long n;  // a multiple of the block length of table_type
  long long n_vocab;
  float scale;       // above 0; 1: none
  DType table_type;  // f32, f16, bf16 or a block format
};

}  // namespace millrace::embedding
