// The weighted sum of a row's experts. Numerics: class cpu.expert_sum.ascending. Where normalised,
// sum = the weights added in ascending j, and weight = weight / sum; each output is one FMA chain
// over ascending j from +0. A NaN is stored as 0x7fc00000.
#pragma once

#include <span>

#include "kernels/expert_sum/args.h"
#include "kernels/kernel.h"

namespace millrace::expert_sum {

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

inline float weight_sum(const Args& a, long long row) {
  float sum = 0;
  for (long long j = 0; j < a.n_used; ++j) sum += a.weights[row * a.n_used + j];
  return sum;
}

namespace reference {
Status run(const Args& args, Exec& exec);
}
namespace plain {  // the witness
Status run(const Args& args, Exec& exec);
}
namespace avx2 {
Status run(const Args& args, Exec& exec);
}

}  // namespace millrace::expert_sum
