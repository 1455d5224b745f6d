// The named problems of the matrix product: every weight type over odd outputs, block counts and
// batches, hostile values, and the shapes of real models (one row, 8 rows, 512 rows).
#pragma once

#include <vector>

#include "kernels/case.h"
#include "kernels/matmul/args.h"

namespace millrace::matmul {

struct Problem {
  DType w_type = DType::q8_0;
  long long n_rows = 1, n = 1, k = 1;
  DType x_type = DType::q8_row;
  DType y_type = DType::f32;
  bool hostile = false;
  bool timed = false;
};

Case make_case(const Problem& problem);
std::vector<Case> cases();

}  // namespace millrace::matmul
