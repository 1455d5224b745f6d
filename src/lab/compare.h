// Comparing an output with its reference: positions of NaN and Inf first, then the case's bound;
// the worst element is named with both values and the bound.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "kernels/case.h"

namespace millrace::lab {

// `magnitudes` is empty (then |want| is used) or has one entry per element.
Status compare(const Port& port, const std::byte* got, const std::byte* want,
               const Tolerance& tolerance, std::span<const double> magnitudes);

}  // namespace millrace::lab
