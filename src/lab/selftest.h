// The walk over op x variant x case: conformance and promise 1 of everything a device can run, and
// fixed rows of the shapes that bench times. The generated tests and `millrace selftest` are this
// walk; nothing else repeats it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/verify.h"

namespace millrace::lab {

inline constexpr uint64_t kSelftestSeed = 20260131;

enum class Suite { conformance, promise1, timed, fused };

enum class Verdict {
  passed,
  failed,
  declined,  // it took none of the cases: a failure, since the device has its ISA
  no_isa,    // this device cannot execute it
};

std::string_view name_of(Suite suite);
std::string_view name_of(Verdict verdict);

struct Outcome {
  std::string_view op, variant;
  Suite suite = Suite::conformance;
  Verdict verdict = Verdict::passed;
  int n_passed = 0;                        // cases
  int n_declined = 0;                      // cases it does not take
  int n_large = 0;                         // timed cases that only bench runs: kLargeBytes
  std::vector<std::string> failures = {};  // one message per failed case, naming it and the seed;
                                           // and per kind of case that it must not decline
  double seconds = 0;
  bool device_lost = false;  // a case broke the device: nothing after it was or can be tested

  bool ok() const { return verdict != Verdict::failed && verdict != Verdict::declined; }
};

// Timed cases of more are left to bench, which verifies them before it times them.
inline constexpr size_t kLargeBytes = size_t{128} << 20;

// One variant over all untimed cases of its op, or over the timed ones.
Outcome test_variant(Runner& runner, const Op& op, const Variant& variant, Suite suite,
                     uint64_t seed = kSelftestSeed);

// One fused kernel over its cases, against the plain calls it equals.
Outcome test_fusion(Runner& runner, const Fusion& fusion, uint64_t seed = kSelftestSeed);
// Those that are for this kind of device; with this name, or all when it is empty.
std::vector<const Fusion*> fusion_tests(const Runner& runner, std::string_view name = {});

struct VariantTest {
  const Op* op;
  const Variant* variant;
  Suite suite;
};

// Everything there is to test on a device, in table order; of one op, or of all when null. The
// reference promises no bits, so promise 1 is not asked of it. Plain variants are not timed. The
// host tests the witnesses too; that others give their bits is part of promise 1.
std::vector<VariantTest> variant_tests(const Runner& runner, const Op* only = nullptr);

}  // namespace millrace::lab
