#include "cli/context.h"

#include <gtest/gtest.h>

namespace millrace::cli {
namespace {

constexpr size_t kMiB = size_t{1} << 20, kGiB = kMiB << 10;

TEST(Context, IsTheModelsOwnWhereMemoryAllows) {
  EXPECT_EQ(default_context(8192, {8 * kGiB, 100 * kMiB, 23040}), 8192);
  EXPECT_EQ(default_context(131072, {64 * kGiB, 5 * kGiB, 131072}), 131072);
}

TEST(Context, LeavesRoomForWeightsAndOthers) {
  // 8 GiB, less 1 in reserve and 5 of weights, are 2 GiB of tokens of 128 KiB.
  EXPECT_EQ(default_context(131072, {8 * kGiB, 5 * kGiB, 128 << 10}), 16384);
  EXPECT_EQ(default_context(131072, {8 * kGiB, 5 * kGiB, (128 << 10) + 1}), 16384 - 256);
  EXPECT_EQ(default_context(131072, {1 * kGiB, 256 * kMiB, 64 << 10}), 8192);
}

TEST(Context, IsNeverTooShortToTalk) {
  EXPECT_EQ(default_context(131072, {kGiB, 5 * kGiB, 128 << 10}), 2048);
  EXPECT_EQ(default_context(1024, {0, kGiB, 128 << 10}), 1024);
}

}  // namespace
}  // namespace millrace::cli
