// What the vector variants share: everything but the sum over the row. Candidates come from topk's
// row selection, a few at first: sorted in descending order, the first 256 hold nearly all of a
// language model's mass, so that a draw seldom needs more, and a longer list continues the shorter.
#pragma once

#include "kernels/kernel.h"
#include "kernels/sample/args.h"

namespace millrace::sample {

// The sum of exp((x - largest) * scale) over the row in the class's 16 f64 lanes, NaN left out.
using Mass = double (*)(const float* x, long long n, float largest, float scale);

size_t rows_workspace_bytes(const Args& args, int n_lanes);
Status run_rows(const Args& args, Exec& exec, Mass mass);

}  // namespace millrace::sample
