#include "kernels/rope/frequencies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace millrace::rope {
namespace {

// Radians per position, back from the binary fraction.
double frequency(const Frequencies& f, size_t i) {
  return static_cast<double>(f.turns[i]) * 0x1p-64 * 2 * std::numbers::pi;
}

TEST(RopeFrequencies, ArePowersOfTheBase) {
  const auto f = make_frequencies(64, {.freq_base = 10000});
  ASSERT_TRUE(f.ok());
  ASSERT_EQ(f.value().turns.size(), 32u);
  for (size_t i = 0; i < 32; ++i) {
    const double want = std::pow(10000.0, -static_cast<double>(i) / 32);
    EXPECT_NEAR(frequency(f.value(), i), want, want * 1e-12);
  }
  EXPECT_EQ(f.value().magnitude, 1.0f);
}

TEST(RopeFrequencies, LinearScalingAndFactorsDivide) {
  const std::vector<float> factors = {1, 2, 4, 8};
  const auto f = make_frequencies(8, {.freq_base = 500000, .freq_scale = 0.5}, factors);
  ASSERT_TRUE(f.ok());
  for (size_t i = 0; i < 4; ++i) {
    const double want = 0.5 * std::pow(500000.0, -static_cast<double>(i) / 4) / factors[i];
    EXPECT_NEAR(frequency(f.value(), i), want, want * 1e-12);
  }
}

// Qwen2.5 with YaRN factor 4: dimension 128, base 1e6, 32768 trained positions. The pairs that make
// 32 turns and one turn over them are 23.6 and 39.7; the ramp runs between their outer integers.
TEST(RopeFrequencies, YarnKeepsFastPairsAndInterpolatesSlowOnes) {
  const Scaling yarn = {.freq_base = 1e6, .freq_scale = 0.25, .ext_factor = 1, .orig_ctx = 32768};
  const auto f = make_frequencies(128, yarn);
  ASSERT_TRUE(f.ok());
  const auto own = [](double i) { return std::pow(1e6, -i / 64); };
  EXPECT_NEAR(frequency(f.value(), 23), own(23), 1e-12);
  EXPECT_NEAR(frequency(f.value(), 40), own(40) / 4, 1e-12);
  const double share = 1 - (32.0 - 23) / (40 - 23);
  EXPECT_NEAR(frequency(f.value(), 32), own(32) * (share + (1 - share) / 4), 1e-12);
  EXPECT_NEAR(f.value().magnitude, 1 + 0.1 * std::log(4.0), 1e-7);
}

// The angle at a far position, from the wrapped product, against long double.
TEST(RopeFrequencies, StayExactFarOut) {
  const auto f = make_frequencies(64, {.freq_base = 10000});
  ASSERT_TRUE(f.ok());
  for (size_t i = 0; i < 32; ++i) {
    const unsigned long long position = 1048575;
    const auto phase = static_cast<long long>(position * f.value().turns[i]);
    const long double want = position * std::pow(10000.0L, -static_cast<long double>(i) / 32);
    EXPECT_NEAR(std::cos(static_cast<double>(phase) * std::numbers::pi * 0x1p-63),
                static_cast<double>(std::cos(want)), 1e-9);
  }
}

TEST(RopeFrequencies, RefusesWhatCannotBe) {
  EXPECT_FALSE(make_frequencies(7, {}).ok());
  EXPECT_FALSE(make_frequencies(0, {}).ok());
  EXPECT_FALSE(make_frequencies(8, {.freq_base = 0}).ok());
  EXPECT_FALSE(make_frequencies(8, {.freq_scale = 0}).ok());
  EXPECT_FALSE(make_frequencies(8, {.ext_factor = 1}).ok());
  const std::vector<float> three = {1, 2, 3}, zero = {1, 0, 1, 1};
  EXPECT_FALSE(make_frequencies(8, {}, three).ok());
  EXPECT_FALSE(make_frequencies(8, {}, zero).ok());
}

}  // namespace
}  // namespace millrace::rope
