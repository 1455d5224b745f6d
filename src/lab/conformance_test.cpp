// Generated: one test per op x variant x case, for conformance and for promise 1. A variant that
// declines every case on a machine that has its ISA fails.
#include <gtest/gtest.h>

#include "lab/verify.h"

namespace millrace::lab {
namespace {

constexpr uint64_t kSeed = 20260131;

struct Combination {
  const Op* op;
  const Variant* variant;
};

std::vector<Combination> combinations() {
  std::vector<Combination> out;
  for (const Op* op : ops())
    for (const Variant& variant : op->variants())
      if (!is_cuda(variant.isa)) out.push_back({op, &variant});
  return out;
}

std::string label(const testing::TestParamInfo<Combination>& info) {
  return std::string(info.param.op->name) + "_" + std::string(info.param.variant->name);
}

class Kernels : public testing::TestWithParam<Combination> {
 protected:
  template <class Check>
  void for_each_case(Check check) {
    const auto [op, variant] = GetParam();
    if (!cpu_has(variant->isa)) GTEST_SKIP() << "this CPU has no " << name_of(variant->isa);
    int n_taken = 0;
    for (const Case& problem : op->cases()) {
      if (problem.timed) continue;  // bench verifies those before it times them
      auto it = Instance::make(*op, problem, kSeed);
      ASSERT_TRUE(it.ok()) << it.status().message();
      auto args = it->args_for(op->variants().back());
      ASSERT_TRUE(args.ok()) << args.status().message();
      if (variant->takes != nullptr && !variant->takes(args->bytes)) continue;
      ++n_taken;
      const Status status = check(*op, *variant, problem, kSeed);
      EXPECT_TRUE(status.ok()) << op->name << "/" << variant->name << "/" << problem.name
                               << " (seed " << kSeed << "): " << status.message();
    }
    EXPECT_GT(n_taken, 0) << variant->name << " declined every case";
  }
};

TEST_P(Kernels, Conform) {
  for_each_case(check_conformance);
}

TEST_P(Kernels, KeepPromise1) {
  if (GetParam().variant->numerics == kReference) GTEST_SKIP() << "the reference promises no bits";
  for_each_case(check_promise1);
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(combinations()), label);

}  // namespace
}  // namespace millrace::lab
