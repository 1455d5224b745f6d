// The generated checks: a variant against the reference on a case (conformance), and promise 1: a
// row gives the same bits alone, in any batch, at any position, with any number of lanes however
// they share it out (splits.h), in any variant of its numerics class, and where other rows lay when
// it was called before. Tests, selftest and bench
// call these; nothing else decides what "right" is.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/case.h"
#include "lab/instance.h"
#include "lab/runner.h"

namespace millrace::lab {

struct Trial {
  Runner& runner;
  const Op& op;
  const Variant& variant;
  const Case& problem;
  uint64_t seed;
};

// Whether the variant computes this case's args (its ISA is the runner's affair). It is asked
// without data: the shape and the types decide.
bool takes(const Variant& variant, const Case& problem);
bool takes(const Variant& variant, Instance& instance);

Status check_conformance(const Trial& trial);
Status check_promise1(const Trial& trial);
// A timed case: the whole batch is computed and compared with another variant of the class where it
// has no witness, and its first and last row are compared with the reference and the witness.
Status check_timed(const Trial& trial);

}  // namespace millrace::lab
