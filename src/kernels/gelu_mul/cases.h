// The named problems of gelu_mul.
#pragma once

#include "kernels/gated_cases.h"
#include "kernels/gelu_mul/floor.h"
#include "kernels/gelu_mul/op.h"

namespace millrace::gelu_mul {

inline Case make_case(const GatedProblem& p) {
  Case c = gated_ports(p);
  c.floor = floor_of(bind_rows(c, p, gated_args<Args>, make_case));
  // Where exp(-t) overflows, at gates below -10.06, gelu is -0 and the truth down to -3.1e-38: |up|
  // stays below 8.
  c.tolerance = {.eps = 0x1p-24, .abs = 3e-37};
  c.magnitude = [](const ArgsBox& box, size_t, std::span<double> out) {
    reference::magnitudes(*reinterpret_cast<const Args*>(box.bytes), out);
  };
  return c;
}

inline std::vector<Case> cases() {
  constexpr long long kWidths[] = {2048, 6912};  // Gemma 3 270M and 1B
  return gated_cases(make_case, 6.0f, kWidths);
}

}  // namespace millrace::gelu_mul
