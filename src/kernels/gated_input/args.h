#pragma once

#include "tensor/dtype.h"

namespace millrace::gated_input {

// y = silu(h * gate) * (h * up) with h = norm(x): rmsnorm, two products and silu_mul, for few rows.
// What the plain ops would have stored is rounded to bf16: h, both products and y.
struct Args {
  const float* x;     // f32 [n_rows][k], 16-byte aligned
  const float* norm;  // f32 [k], 16-byte aligned
  const void* gate;   // w_type [n][k] in layout mma16
  const void* up;     // as gate
  void* y;            // bf16 [n_rows][n]; overlaps none of the above
  long long n_rows;
  long long n;
  long long k;  // a multiple of 16; of its block where w_type has one
  float eps;
  DType w_type;  // bf16, q8_0, q4_0, q4_k or q6_k
};

}  // namespace millrace::gated_input
