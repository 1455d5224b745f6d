// The generated checks: a variant against the reference on a case (conformance), and promise 1: a
// row gives the same bits alone, in any batch, at any position, with any number of lanes, and in
// any variant of its numerics class. Tests, selftest and bench call these; nothing else decides
// what "right" is.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/case.h"
#include "lab/instance.h"

namespace millrace::lab {

// Runs the variant once on the instance's buffers with n_lanes lanes.
Status run_once(Instance& instance, const Variant& variant, int n_lanes);

// Conformance of one variant on one case.
Status check_conformance(const Op& op, const Variant& variant, const Case& problem, uint64_t seed);

// Promise 1 of one variant on one case.
Status check_promise1(const Op& op, const Variant& variant, const Case& problem, uint64_t seed);

}  // namespace millrace::lab
