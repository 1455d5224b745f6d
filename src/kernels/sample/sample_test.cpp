// What conformance cannot see: that the draws follow the distribution, and that each rule keeps
// what its name says.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/sample/op.h"

namespace millrace::sample {
namespace {

// One row of logits, drawn at positions 0 to n_draws - 1.
struct Draws {
  std::vector<float> logits;
  float temperature = 1.0f;
  int top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;

  std::vector<int> counts(int n_draws) const {
    std::vector<float> rows;
    std::vector<unsigned long long> position(n_draws);
    std::iota(position.begin(), position.end(), 0);
    for (int r = 0; r < n_draws; ++r) rows.insert(rows.end(), logits.begin(), logits.end());
    const std::vector<float> t(n_draws, temperature), p(n_draws, top_p), m(n_draws, min_p);
    const std::vector<int> k(n_draws, top_k);
    const std::vector<unsigned long long> seed(n_draws, 42);
    std::vector<int> token(n_draws);
    std::vector<float> logprob(n_draws);
    const Args args = {rows.data(),
                       t.data(),
                       k.data(),
                       p.data(),
                       m.data(),
                       seed.data(),
                       position.data(),
                       token.data(),
                       logprob.data(),
                       n_draws,
                       static_cast<long long>(logits.size())};
    std::vector<std::byte> workspace(reference::workspace_bytes(args, 1));
    Exec exec{.workspace = workspace.data(), .workspace_bytes = workspace.size()};
    EXPECT_TRUE(reference::run(args, exec).ok());
    std::vector<int> counts(logits.size());
    for (int id : token) ++counts[static_cast<size_t>(id)];
    return counts;
  }
};

const std::vector<float> kLogits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.05f),
                                    std::log(0.25f)};

TEST(Sample, FollowsTheDistribution) {
  constexpr int kDraws = 20000;
  const std::vector<int> counts = Draws{kLogits}.counts(kDraws);
  const double expected[] = {0.1, 0.4, 0.2, 0.05, 0.25};
  for (size_t i = 0; i < counts.size(); ++i) {
    const double sigma = std::sqrt(kDraws * expected[i] * (1 - expected[i]));
    EXPECT_NEAR(counts[i], kDraws * expected[i], 4 * sigma) << "token " << i;
  }
}

TEST(Sample, TopKKeepsTheFirst) {
  const std::vector<int> counts = Draws{.logits = kLogits, .top_k = 2}.counts(500);
  EXPECT_EQ(counts[1] + counts[4], 500);
  EXPECT_GT(counts[4], 0);
}

TEST(Sample, TopPKeepsTheFewestThatReachIt) {
  // 0.4 + 0.25 reach 0.6; the next is not needed.
  const std::vector<int> counts = Draws{.logits = kLogits, .top_p = 0.6f}.counts(500);
  EXPECT_EQ(counts[1] + counts[4], 500);
  EXPECT_GT(counts[4], 0);
}

TEST(Sample, MinPIsAShareOfTheFirst) {
  // 0.2 / 0.4 is above 0.4, 0.1 / 0.4 is not.
  const std::vector<int> counts = Draws{.logits = kLogits, .min_p = 0.4f}.counts(500);
  EXPECT_EQ(counts[0] + counts[3], 0);
  EXPECT_GT(counts[2], 0);
}

TEST(Sample, GreedyAndColdTakeTheArgmax) {
  EXPECT_EQ((Draws{.logits = kLogits, .temperature = 0.0f}.counts(50)[1]), 50);
  EXPECT_EQ((Draws{.logits = kLogits, .temperature = 0.01f}.counts(50)[1]), 50);
}

TEST(Sample, NeverDrawsWhatIsMasked) {
  const std::vector<float> logits = {-INFINITY, NAN, 1.0f, -INFINITY, 1.0f};
  const std::vector<int> counts = Draws{.logits = logits, .temperature = 5.0f}.counts(500);
  EXPECT_EQ(counts[2] + counts[4], 500);
}

}  // namespace
}  // namespace millrace::sample
