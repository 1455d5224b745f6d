// Floors of bound calls: every op has one, and attention's reads what its rows see.
#include <gtest/gtest.h>

#include "kernels/attention/floor.h"
#include "kernels/kernel.h"

namespace millrace {
namespace {

TEST(OpFloors, EveryOpHasOne) {
  for (const Op* op : ops()) EXPECT_NE(op->floor, nullptr) << op->name;
}

attention::Seen seen(std::vector<int> positions, std::vector<int> sequences, long long window) {
  attention::Args a{};
  a.positions = positions.data();
  a.sequences = sequences.data();
  a.n_rows = static_cast<long long>(positions.size());
  a.window = window;
  return attention::seen_by(a);
}

TEST(OpFloors, AttentionCountsEachTokenOnceForTheRowsOfASequence) {
  const auto prefill = seen({10, 11, 12}, {0, 0, 0}, 0);
  EXPECT_EQ(prefill.tokens, 13);
  EXPECT_EQ(prefill.pairs, 11 + 12 + 13);
  const auto decode = seen({4, 9}, {0, 1}, 0);
  EXPECT_EQ(decode.tokens, 5 + 10);
  EXPECT_EQ(decode.pairs, 5 + 10);
}

TEST(OpFloors, AttentionCountsTheWindowAndNoPadding) {
  const auto window = seen({10, 11, -1}, {0, 0, 0}, 4);
  EXPECT_EQ(window.tokens, 5);
  EXPECT_EQ(window.pairs, 8);
  EXPECT_EQ(seen({1, 20}, {0, 0}, 4).tokens, 6);  // apart: what is between is not read
}

}  // namespace
}  // namespace millrace
