#include "lab/selftest.h"

#include <algorithm>

#include "base/clock.h"
#include "lab/witness.h"

namespace millrace::lab {
namespace {

Status check(Suite suite, const Trial& trial) {
  switch (suite) {
    case Suite::conformance:
      return check_conformance(trial);
    case Suite::promise1:
      return check_promise1(trial);
    case Suite::timed:
      return check_timed(trial);
    case Suite::fused:
      break;  // no variant's: test_fusion
  }
  return {};
}

bool is_large(const Case& problem) {
  size_t bytes = 0;
  for (const Port& port : problem.ports) bytes += bytes_of(port);
  return bytes > kLargeBytes;
}

bool has_timed_cases(const Op& op) {
  const std::vector<Case> cases = op.cases();
  return std::any_of(cases.begin(), cases.end(), [](const Case& c) { return c.timed; });
}

void test_case(const Trial& trial, Suite suite, Outcome& out) {
  if (!takes(trial.variant, trial.problem)) {
    ++out.n_declined;
    return;
  }
  if (suite == Suite::timed && is_large(trial.problem)) {
    ++out.n_large;
    return;
  }
  const Status status = check(suite, trial);
  out.device_lost = status.code() == Code::device_lost;
  if (status.ok())
    ++out.n_passed;
  else
    out.failures.push_back(fmt::format("{}/{}/{} (seed {}): {}", trial.op.name, trial.variant.name,
                                       trial.problem.name, trial.seed, status.message()));
}

bool same_types(const Case& a, const Case& b) {
  return std::equal(a.ports.begin(), a.ports.end(), b.ports.begin(), b.ports.end(),
                    [](const Port& x, const Port& y) { return x.type == y.type; });
}

// Also at the rows of the timed case: a variant may be for few of them.
bool takes_hostile(const Variant& variant, const Case& hostile, const Case& timed) {
  return takes(variant, hostile) ||
         (hostile.with_rows && takes(variant, hostile.with_rows(timed.n_rows)));
}

// A variant that is timed on some types is tested on their hostile values (Case::hostile).
void check_domain(const Op& op, const Variant& variant, Outcome& out) {
  const std::vector<Case> cases = op.cases();
  for (const Case& timed : cases) {
    if (!timed.timed || !takes(variant, timed)) continue;
    const Case* declined = nullptr;
    bool took = false;
    for (const Case& c : cases)
      if (c.hostile && !c.timed && same_types(c, timed)) {
        took = took || takes_hostile(variant, c, timed);
        declined = &c;
      }
    if (took || declined == nullptr) continue;
    out.failures.push_back(
        fmt::format("{}/{}: takes {} and declines every hostile case of the same types, as {}",
                    op.name, variant.name, timed.name, declined->name));
    return;
  }
}

Verdict verdict_of(const Outcome& out) {
  if (!out.failures.empty()) return Verdict::failed;
  if (out.suite == Suite::timed) return Verdict::passed;  // it need not be for what is timed
  return out.n_passed > 0 ? Verdict::passed : Verdict::declined;
}

}  // namespace

std::string_view name_of(Suite suite) {
  switch (suite) {
    case Suite::conformance:
      return "conformance";
    case Suite::promise1:
      return "promise 1";
    case Suite::timed:
      return "timed shapes";
    case Suite::fused:
      return "fused";
  }
  return "unknown";
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
    if (problem.timed == (suite == Suite::timed) && !out.device_lost)
      test_case({runner, op, variant, problem, seed}, suite, out);
  if (suite == Suite::conformance) check_domain(op, variant, out);
  out.verdict = verdict_of(out);
  out.seconds = static_cast<double>(now_ns() - start) * 1e-9;
  return out;
}

Outcome test_fusion(Runner& runner, const Fusion& fusion, uint64_t seed) {
  Outcome out{.op = fusion.name, .variant = fusion.variant.name, .suite = Suite::fused};
  if (!runner.has(fusion.variant)) {
    out.verdict = Verdict::no_isa;
    return out;
  }
  const int64_t start = now_ns();
  for (const FusedCase& problem : fusion.cases()) {
    Result<bool> same = runner.check_fused(fusion, problem, seed);
    out.device_lost = same.status().code() == Code::device_lost;
    if (!same.ok())
      out.failures.push_back(fmt::format("{}/{} (seed {}): {}", fusion.name, problem.name, seed,
                                         same.status().message()));
    else
      ++(*same ? out.n_passed : out.n_declined);
    if (out.device_lost) break;
  }
  out.verdict = verdict_of(out);
  out.seconds = static_cast<double>(now_ns() - start) * 1e-9;
  return out;
}

std::vector<const Fusion*> fusion_tests(const Runner& runner, std::string_view name) {
  std::vector<const Fusion*> out;
  for (const Fusion* fusion : fusions())
    if (fusion->variant.run != nullptr && runner.owns(fusion->variant) &&
        (name.empty() || name == fusion->name))
      out.push_back(fusion);
  return out;
}

std::vector<VariantTest> variant_tests(const Runner& runner, const Op* only) {
  std::vector<VariantTest> tests;
  for (const Op* op : ops()) {
    if (only != nullptr && op != only) continue;
    for (const Variant& variant : op->variants()) {
      if (!runner.owns(variant)) continue;
      tests.push_back({op, &variant, Suite::conformance});
      if (variant.numerics == kReference) continue;
      tests.push_back({op, &variant, Suite::promise1});
      if (variant.isa != Isa::generic && has_timed_cases(*op))
        tests.push_back({op, &variant, Suite::timed});
    }
    for (const Variant& witness : witnesses_of(*op))
      if (runner.owns(witness)) tests.push_back({op, &witness, Suite::conformance});
  }
  return tests;
}

}  // namespace millrace::lab
