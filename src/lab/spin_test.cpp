#include "lab/spin.h"

#include <gtest/gtest.h>

namespace millrace::lab {
namespace {

TEST(TwinReportTest, EveryTryIsCountedOnce) {
  TwinReport report;
  for (const Speed speed : {Speed::fast, Speed::slow, Speed::slow, Speed::same, Speed::ambiguous})
    report.count({{-0.1, 0, 0.1}, speed});
  EXPECT_EQ(report.n_tries, 5);
  EXPECT_EQ(report.n_called(), 3);
  EXPECT_EQ(report.n_same, 1);
  EXPECT_EQ(report.n_ambiguous, 1);
  EXPECT_EQ(metrics_of(report, 2)[1].value.mid, 3);
}

TEST(SpinReportTest, TheEdgeIsTakenOffRoundByRound) {
  SpinReport report;
  report.spin_us = {10.5, 12, 10.4};
  report.edge_us = {0.5, 1.9, 0.3};
  EXPECT_NEAR(report.net_us().mid, 10.1, 1e-9);
  EXPECT_NEAR(report.error(), 0.01, 1e-9);
  report.double_us = {20.6, 22, 20.3};
  EXPECT_NEAR(report.difference_us().mid, 10, 1e-9);
}

}  // namespace
}  // namespace millrace::lab
