// Status, CHECK, clocks and Philox.
#include <gtest/gtest.h>

#include <cmath>

#include "base/check.h"
#include "base/clock.h"
#include "base/philox.h"
#include "base/status.h"

namespace millrace {
namespace {

TEST(Status, CarriesItsCodeAndMessage) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().code(), Code::ok);
  const Status bad = error(Code::not_found, "no file {}", "x");
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.code(), Code::not_found);
  EXPECT_EQ(bad.message(), "no file x");
  Status copy = bad;
  EXPECT_EQ(copy.message(), "no file x");
  copy = Status();
  EXPECT_TRUE(copy.ok());
}

Result<int> half(int n) {
  if (n % 2 != 0) return error(Code::invalid_argument, "{} is odd", n);
  return n / 2;
}

Result<int> quarter(int n) {
  MILLRACE_ASSIGN(const int once, half(n));
  MILLRACE_ASSIGN(const int twice, half(once));
  return twice;
}

Status check_quarter(int n) {
  MILLRACE_TRY(quarter(n).status());
  return {};
}

TEST(Status, ResultsPassThroughTryAndAssign) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).status().message(), "3 is odd");
  EXPECT_TRUE(check_quarter(8).ok());
  EXPECT_EQ(check_quarter(5).code(), Code::invalid_argument);
}

TEST(Status, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(Code::wrong_result); ++code)
    EXPECT_NE(name_of(static_cast<Code>(code)), "unknown") << code;
}

TEST(CheckDeathTest, PrintsTheSiteTheConditionAndTheValues) {
  const int n = 3;
  EXPECT_DEATH(MILLRACE_CHECK(n == 4, "n is {}", n), "base_test.cpp:.*n == 4: n is 3");
  EXPECT_DEATH((void)half(1).value(), "value\\(\\) of a failed Result: 1 is odd");
  EXPECT_DEATH((void)Result<int>(Status()), "ok Status");
}

TEST(Clock, RunsForward) {
  const int64_t a = now_ns(), b = now_ns();
  EXPECT_GE(b, a);
  const std::string text = utc_now();
  ASSERT_EQ(text.size(), 20u);
  EXPECT_EQ(text[10], 'T');
  EXPECT_EQ(text[19], 'Z');
}

// The known-answer vectors published with Random123 for philox4x32-10.
TEST(Philox, GivesThePublishedVectors) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(philox(0, 0, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, ADrawDependsOnItsPositionAlone) {
  const float third = philox_uniform(5, 2);
  (void)philox_uniform(5, 0);
  EXPECT_EQ(philox_uniform(5, 2), third);
  for (uint64_t i = 0; i < 1000; ++i) {
    const float u = philox_uniform(9, i);
    EXPECT_GE(u, 0.0f);
    EXPECT_LT(u, 1.0f);
  }
}

TEST(Philox, StreamsAreSeparateAndReproducible) {
  Rng a(1), b(1), other(1, 1);
  bool differs = false;
  double sum = 0, squares = 0;
  constexpr int n = 4096;
  for (int i = 0; i < n; ++i) {
    const float x = a.normal();
    EXPECT_EQ(x, b.normal());
    differs = differs || x != other.normal();
    sum += x;
    squares += double{x} * x;
  }
  EXPECT_TRUE(differs);
  EXPECT_NEAR(sum / n, 0, 0.08);
  EXPECT_NEAR(std::sqrt(squares / n), 1, 0.05);
  EXPECT_EQ(a.below(0), 0u);
  EXPECT_LT(a.below(3), 3u);
}

}  // namespace
}  // namespace millrace
