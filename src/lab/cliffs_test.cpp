#include "lab/cliffs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lab/warm_target.h"

namespace millrace::lab {
namespace {

// Times of rows 1 to n, of which those after `edge` cost `factor` as much, in 40 rounds of a
// machine whose speed wanders and whose samples are off by up to 1 %.
std::vector<std::vector<double>> sweep(size_t n, size_t edge, double factor) {
  std::vector<std::vector<double>> out(n);
  for (size_t round = 0; round < 40; ++round) {
    const double drift = 1 + 0.3 * std::sin(static_cast<double>(round));
    for (size_t i = 0; i < n; ++i) {
      const double jitter = 1 + 0.01 * (static_cast<double>((round * 7 + i * 13) % 11) / 5 - 1);
      const double rows = static_cast<double>(i + 1);
      out[i].push_back(drift * jitter * (10 + rows) * (i >= edge ? factor : 1));
    }
  }
  return out;
}

std::vector<int64_t> rows_to(size_t n) {
  std::vector<int64_t> out;
  for (size_t i = 1; i <= n; ++i) out.push_back(static_cast<int64_t>(i));
  return out;
}

TEST(CliffsTest, AStepIsFoundWhereItIsAndNowhereElse) {
  for (const size_t edge : {4u, 8u, 12u}) {
    const auto steps = judge_steps(rows_to(16), sweep(16, edge, 1.4), 0.01, 0.05);
    for (const Step& step : steps)
      EXPECT_EQ(step.verdict, step.rows == static_cast<int64_t>(edge) ? "cliff" : "none")
          << step.rows << ": " << step.log_excess.lo << " to " << step.log_excess.hi;
  }
}

TEST(CliffsTest, ASmoothCurveHasNone) {
  for (const Step& step : judge_steps(rows_to(16), sweep(16, 99, 1), 0.01, 0.05))
    EXPECT_EQ(step.verdict, "none") << step.rows;
}

TEST(CliffsTest, AStepWithinTheNoiseIsNotCalled) {
  for (const Step& step : judge_steps(rows_to(16), sweep(16, 8, 1.1), 0.5, 0.05))
    EXPECT_NE(step.verdict, "cliff") << step.rows;
  std::vector<std::vector<double>> few(4, std::vector<double>{1, 1, 1});
  for (const Step& step : judge_steps(rows_to(4), few, 0, 0.05))
    EXPECT_EQ(step.verdict, "undecided");
}

TEST(CliffsTest, EdgesComeFromWhatVariantsDeclare) {
  const Machine machine = find_machine();
  const auto target = warm_cpu_target(machine, 1);
  CliffOptions options;
  options.op = "matmul";
  options.problem = "q8_0_8x576x576";
  options.variants = {"avx2"};
  if (!machine.has(Isa::avx2)) GTEST_SKIP() << "no AVX2";
  options.last = 18;
  const auto plan = plan_cliffs(*target, machine, options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto is_predicted = [&](int64_t rows, const std::string& kind) {
    const auto& edges = plan.value().edges;
    return std::any_of(edges.begin(), edges.end(),
                       [&](const RowEdge& e) { return e.rows == rows && e.kind == kind; });
  };
  EXPECT_TRUE(is_predicted(1, "tile")) << "one row has a way of its own";
  EXPECT_TRUE(is_predicted(8, "tile")) << "eight rows fit the registers";
  EXPECT_TRUE(is_predicted(16, "tile")) << "from 17 on tiles are expanded";
  EXPECT_FALSE(is_predicted(5, "tile"));
  EXPECT_EQ(plan.value().points[8].problem.name, "q8_0_9x576x576");
}

TEST(CliffsTest, BadRequestsAreErrors) {
  const Machine machine = find_machine();
  const auto target = warm_cpu_target(machine, 1);
  const auto plan = [&](CliffOptions options) { return plan_cliffs(*target, machine, options); };
  CliffOptions good;
  good.op = "matmul";
  EXPECT_TRUE(plan(good).ok());
  for (auto change : std::vector<void (*)(CliffOptions&)>{
           [](CliffOptions& o) { o.op = "nothing"; }, [](CliffOptions& o) { o.problem = "x"; },
           [](CliffOptions& o) { o.variants = {"x"}; }, [](CliffOptions& o) { o.mode = "hot"; },
           [](CliffOptions& o) { o.first = 0; }, [](CliffOptions& o) { o.last = 1; },
           [](CliffOptions& o) { o.last = 1'000'000'000; }}) {
    CliffOptions bad = good;
    change(bad);
    EXPECT_FALSE(plan(bad).ok());
  }
}

TEST(CliffsTest, ASparklineHasACharacterAValue) {
  EXPECT_EQ(sparkline({1, 8}), "▁█");
  EXPECT_EQ(sparkline({}), "");
}

}  // namespace
}  // namespace millrace::lab
