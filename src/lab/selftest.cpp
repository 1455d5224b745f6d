#include "lab/selftest.h"

#include "base/clock.h"

namespace millrace::lab {
namespace {

Status check(Suite suite, const Trial& trial) {
  return suite == Suite::conformance ? check_conformance(trial) : check_promise1(trial);
}

// Failures to even make the instance (no memory) are failures of the case.
void test_case(const Trial& trial, Suite suite, Outcome& out) {
  auto instance = Instance::make(trial.op, trial.problem, trial.seed);
  if (instance.ok() && !takes(trial.variant, *instance)) {
    ++out.n_declined;
    return;
  }
  const Status status = instance.ok() ? check(suite, trial) : instance.status();
  out.device_lost = status.code() == Code::device_lost;
  if (status.ok())
    ++out.n_passed;
  else
    out.failures.push_back(fmt::format("{}/{}/{} (seed {}): {}", trial.op.name, trial.variant.name,
                                       trial.problem.name, trial.seed, status.message()));
}

Verdict verdict_of(const Outcome& out) {
  if (!out.failures.empty()) return Verdict::failed;
  return out.n_passed > 0 ? Verdict::passed : Verdict::declined;
}

}  // namespace

std::string_view name_of(Suite suite) {
  return suite == Suite::conformance ? "conformance" : "promise 1";
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "passed";
    case Verdict::failed:
      return "FAILED";
    case Verdict::declined:
      return "DECLINED ALL";
    case Verdict::no_isa:
      return "no ISA";
  }
  return "unknown";
}

Outcome test_variant(Runner& runner, const Op& op, const Variant& variant, Suite suite,
                     uint64_t seed) {
  Outcome out{.op = op.name, .variant = variant.name, .suite = suite};
  if (!runner.has(variant)) {
    out.verdict = Verdict::no_isa;
    return out;
  }
  const int64_t start = now_ns();
  for (const Case& problem : op.cases())
    if (!problem.timed && !out.device_lost)
      test_case({runner, op, variant, problem, seed}, suite, out);
  out.verdict = verdict_of(out);
  out.seconds = static_cast<double>(now_ns() - start) * 1e-9;
  return out;
}

std::vector<VariantTest> variant_tests(const Runner& runner, const Op* only) {
  std::vector<VariantTest> tests;
  for (const Op* op : ops()) {
    if (only != nullptr && op != only) continue;
    for (const Variant& variant : op->variants()) {
      if (!runner.owns(variant)) continue;
      tests.push_back({op, &variant, Suite::conformance});
      if (variant.numerics != kReference) tests.push_back({op, &variant, Suite::promise1});
    }
  }
  return tests;
}

}  // namespace millrace::lab
