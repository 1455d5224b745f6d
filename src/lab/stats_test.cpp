#include "lab/stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/philox.h"

namespace millrace::lab {
namespace {

std::vector<double> noisy(uint64_t seed, int n, double middle, double spread) {
  Rng rng(seed);
  std::vector<double> out;
  for (int i = 0; i < n; ++i) out.push_back(middle * std::exp(spread * rng.normal()));
  return out;
}

TEST(Stats, Medians) {
  EXPECT_EQ(median(std::vector<double>{3}), 3);
  EXPECT_EQ(median(std::vector<double>{5, 1, 3}), 3);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
}

// The textbook ranks: 6 samples are the least for 95 %, and their interval is the whole range; of
// 20, the 6th and the 15th.
TEST(Stats, IntervalsHaveTheTextbookRanks) {
  EXPECT_EQ(least_samples(0.05), 6);
  std::vector<double> x;
  for (int i = 1; i <= 5; ++i) x.push_back(i);
  EXPECT_FALSE(median_interval(x).finite());
  x.push_back(6);
  EXPECT_EQ(median_interval(x).lo, 1);
  EXPECT_EQ(median_interval(x).hi, 6);
  for (int i = 7; i <= 20; ++i) x.push_back(i);
  EXPECT_EQ(median_interval(x).lo, 6);
  EXPECT_EQ(median_interval(x).hi, 15);
  EXPECT_FALSE(median_interval({}).finite());
}

TEST(Stats, IntervalsHoldTheMedianAsOftenAsTheySay) {
  int held = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Interval it = median_interval(noisy(seed, 25, 1.0, 0.3));
    held += it.lo <= 1.0 && 1.0 <= it.hi ? 1 : 0;
  }
  EXPECT_GE(held, 940);
}

TEST(Stats, JudgesByTheWholeInterval) {
  EXPECT_EQ(judge({-0.05, -0.04, -0.02}, 0.01), Speed::fast);
  EXPECT_EQ(judge({0.02, 0.03, 0.05}, 0.01), Speed::slow);
  EXPECT_EQ(judge({-0.009, 0, 0.01}, 0.01), Speed::same);
  EXPECT_EQ(judge({-0.05, -0.03, -0.001}, 0.01), Speed::ambiguous);
  EXPECT_EQ(judge({-0.1, 0, 0.1}, 0.8), Speed::ambiguous);  // too noisy to be called the same
  EXPECT_EQ(judge({-INFINITY, -3, INFINITY}, 0.01), Speed::ambiguous);
}

TEST(Stats, PairsCancelSharedDrift) {
  const auto drift = noisy(1, 31, 100, 0.5), jitter = noisy(2, 31, 1, 0.002);
  std::vector<double> a = drift, b = drift;
  for (size_t i = 0; i < b.size(); ++i) b[i] *= 0.95 * jitter[i];
  const Comparison paired = compare_paired(a, b, 0.05, 0.005);
  EXPECT_EQ(paired.speed, Speed::fast);
  EXPECT_NEAR(paired.log_ratio.mid, std::log(0.95), 0.002);
  EXPECT_EQ(compare_unpaired(a, b, 0.05, 0.005).speed, Speed::ambiguous);
  EXPECT_EQ(compare_paired(b, a, 0.05, 0.005).speed, Speed::slow);
}

TEST(Stats, IdenticalWorkIsNeverCalledDifferent) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const auto a = noisy(3 * seed, 21, 10, 0.03), twin = noisy(3 * seed + 1, 21, 10, 0.03),
               b = noisy(3 * seed + 2, 21, 10, 0.03);
    const double effect = min_effect_of(noise_of(a, twin));
    const Speed speed = compare_paired(a, b, 0.05, effect).speed;
    wrong += speed == Speed::fast || speed == Speed::slow ? 1 : 0;
  }
  EXPECT_LE(wrong, 4);
}

TEST(Stats, QuietUnpairedRunsAreDecided) {
  const auto a = noisy(1, 40, 10, 0.001), b = noisy(2, 40, 9, 0.001), c = noisy(3, 40, 10, 0.001);
  EXPECT_EQ(compare_unpaired(a, b, 0.05, 0.005).speed, Speed::fast);
  EXPECT_EQ(compare_unpaired(a, c, 0.05, 0.005).speed, Speed::same);
}

TEST(Stats, TooFewSamplesDecideNothing) {
  const std::vector<double> a = {10, 10, 10}, b = {5, 5, 5};
  EXPECT_EQ(compare_paired(a, b, 0.05, 0.005).speed, Speed::ambiguous);
  EXPECT_EQ(compare_unpaired(a, b, 0.05, 0.005).speed, Speed::ambiguous);
  EXPECT_TRUE(std::isinf(noise_of(a, b)));
}

TEST(Stats, LeastEffectIsHalfAPercent) {
  EXPECT_EQ(min_effect_of(0.001), kLeastEffect);
  EXPECT_EQ(min_effect_of(0.02), 0.02);
}

}  // namespace
}  // namespace millrace::lab
