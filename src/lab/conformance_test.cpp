// Generated: one test per op x variant x suite. A variant that declines every case on a machine
// that has its ISA fails.
#include <gtest/gtest.h>

#include "lab/selftest.h"

namespace millrace::lab {
namespace {

struct Host {
  Machine machine = find_machine();
  std::unique_ptr<Runner> runner = cpu_runner(machine);
};

std::string label(const testing::TestParamInfo<VariantTest>& info) {
  const auto& test = info.param;
  return fmt::format("{}_{}_{}", test.op->name, test.variant->name,
                     test.suite == Suite::conformance ? "conforms" : "keeps_promise1");
}

class Kernels : public testing::TestWithParam<VariantTest> {};

TEST_P(Kernels, Hold) {
  const auto [op, variant, suite] = GetParam();
  Host host;
  const Outcome outcome = test_variant(*host.runner, *op, *variant, suite);
  if (outcome.verdict == Verdict::no_isa)
    GTEST_SKIP() << "this CPU has no " << name_of(variant->isa);
  EXPECT_NE(outcome.verdict, Verdict::declined) << variant->name << " declined every case";
  for (const auto& failure : outcome.failures) ADD_FAILURE() << failure;
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(variant_tests(*Host().runner)), label);

}  // namespace
}  // namespace millrace::lab
