#include "machine/health.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

Machine good_machine() {
  Machine m;
  m.n_cpus = m.n_cores = 8;
  m.cpus = {0, 1, 2, 3, 4, 5, 6, 7};
  m.isas = {Isa::generic, Isa::avx2, Isa::sm80, Isa::sm90};
  m.memory_bytes = size_t{64} << 30;
  m.memory_available_bytes = size_t{60} << 30;
  m.huge_pages = "madvise";
  m.gpus = {Gpu{.index = 0, .name = "NVIDIA H200", .sm = 90}};
  return m;
}

Ceilings good_ceilings() {
  Ceilings c;
  c.n_lanes = 8;
  c.read_gbps_one = 15;
  c.read_gbps_all = 90;
  c.barrier_ns = 400;
  return c;
}

// The severity of the finding whose text holds `part`; fails when there is none.
void expect_finding(const std::vector<Finding>& all, Severity severity, std::string_view part) {
  for (const Finding& f : all) {
    if (f.what.find(part) == std::string::npos) continue;
    EXPECT_EQ(f.severity, severity) << f.what;
    EXPECT_FALSE(f.remedy.empty()) << f.what;
    return;
  }
  ADD_FAILURE() << "no finding says '" << part << "'";
}

TEST(Health, AGoodMachineHasNoFindings) {
  EXPECT_TRUE(examine(good_machine(), good_ceilings(), true).empty());
}

TEST(Health, EveryProblemIsNamedWithARemedy) {
  Machine m = good_machine();
  m.isas = {Isa::generic};
  m.n_cpus = 1;
  m.cpus.clear();
  m.cpu_quota = 1.5;
  m.n_numa_nodes = 2;
  m.has_amx = true;
  m.memory_available_bytes = size_t{1} << 30;
  m.huge_pages = "never";
  m.gpus.clear();
  m.gpu_problem = "no driver";
  Ceilings c = good_ceilings();
  c.barrier_ns = 5000;
  c.read_gbps_all = 16;
  c.quiet = false;
  c.noise = "not quiet: other processes used 1.00 CPUs";
  const auto all = examine(m, c, true);
  for (const char* part : {"AVX2", "one CPU", "control group", "1024 MiB", "huge pages", "no GPU",
                           "to meet", "not quiet"})
    expect_finding(all, Severity::warning, part);
  expect_finding(all, Severity::note, "NUMA");
  expect_finding(all, Severity::note, "AMX");
  expect_finding(all, Severity::note, "hardly more");
  EXPECT_EQ(all.back().severity, Severity::note);
}

TEST(Health, AGpuIsMissedByACudaBuildOnly) {
  Machine m = good_machine();
  expect_finding(examine(m, good_ceilings(), false), Severity::warning, "no GPU code");
  m.gpus[0].sm = 75;
  expect_finding(examine(m, good_ceilings(), true), Severity::warning, "7.5");
  m.gpus.clear();
  m.gpu_problem = "no driver";
  expect_finding(examine(m, good_ceilings(), false), Severity::note, "no GPU");
}

TEST(Health, TooLittleMemoryIsUnusableAndComesFirst) {
  Machine m = good_machine();
  m.memory_available_bytes = size_t{100} << 20;
  m.huge_pages = "never";
  const auto all = examine(m, good_ceilings(), true);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().severity, Severity::unusable);
}

}  // namespace
}  // namespace millrace
