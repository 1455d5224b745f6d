// The pointers of a call in f32, which is all that CPU variants take.
#pragma once

#include "kernels/silu_mul/args.h"

namespace millrace::silu_mul {

struct Floats {
  const float *gate, *up;
  float* y;

  explicit Floats(const Args& a)
      : gate(static_cast<const float*>(a.gate)),
        up(static_cast<const float*>(a.up)),
        y(static_cast<float*>(a.y)) {}
};

}  // namespace millrace::silu_mul
