// The named problems of silu_mul.
#pragma once

#include "kernels/gated_cases.h"
#include "kernels/silu_mul/floor.h"

namespace millrace::silu_mul {

inline Case make_case(const GatedProblem& p) {
  Case c = gated_ports(p);
  c.floor = floor_of(bind_rows(c, p, gated_args<Args>, make_case));
  // silu is within 2.5 units in the last place and the product rounds once more. Below -88.73 silu
  // is -0 where the truth is down to -1.3e-37: |up| stays below 8.
  c.tolerance = {.eps = 4 * 0x1p-23, .abs = 2e-36};
  return c;
}

inline std::vector<Case> cases() {
  constexpr long long kWidths[] = {1536, 3072};  // SmolLM2-135M, Qwen3-0.6B
  return gated_cases(make_case, 60.0f, kWidths);
}

}  // namespace millrace::silu_mul
