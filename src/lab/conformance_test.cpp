// Generated: one test per op x variant x suite. A variant that declines every case on a machine
// that has its ISA fails. The shapes that are timed take longer and are not among the fast tests.
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
                     test.suite == Suite::conformance ? "conforms"
                     : test.suite == Suite::promise1  ? "keeps_promise1"
                                                      : "is_right_where_timed");
}

std::vector<VariantTest> tests_of(bool timed) {
  std::vector<VariantTest> tests = variant_tests(*Host().runner);
  std::erase_if(tests, [&](const VariantTest& t) { return (t.suite == Suite::timed) != timed; });
  return tests;
}

void test(const VariantTest& which) {
  const auto [op, variant, suite] = which;
  Host host;
  const Outcome outcome = test_variant(*host.runner, *op, *variant, suite);
  if (outcome.verdict == Verdict::no_isa)
    GTEST_SKIP() << "this CPU has no " << name_of(variant->isa);
  EXPECT_NE(outcome.verdict, Verdict::declined) << variant->name << " declined every case";
  for (const auto& failure : outcome.failures) ADD_FAILURE() << failure;
}

class Kernels : public testing::TestWithParam<VariantTest> {};
class KernelsFull : public testing::TestWithParam<VariantTest> {};

TEST_P(Kernels, Hold) {
  test(GetParam());
}
TEST_P(KernelsFull, Hold) {
  test(GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(tests_of(false)), label);
INSTANTIATE_TEST_SUITE_P(All, KernelsFull, testing::ValuesIn(tests_of(true)), label);

}  // namespace
}  // namespace millrace::lab
