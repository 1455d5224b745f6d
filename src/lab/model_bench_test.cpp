#include "lab/model_bench.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace millrace::lab {
namespace {

// Logits that follow from the tokens alone, as a model's do; one of them can be planted wrong.
class ToySteps : public ModelSteps {
 public:
  Status restart() override {
    tokens_.clear();
    ++n_runs_;
    return {};
  }
  Status compute(std::span<const int32_t> tokens) override {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    if (std::ssize(tokens_) == skip_at) return {};
    float state = 1;
    for (const int32_t token : tokens_) state = state * 0.75f + static_cast<float>(token);
    for (size_t i = 0; i < logits_.size(); ++i) logits_[i] = state / static_cast<float>(i + 1);
    if (n_runs_ == plant_run && std::ssize(tokens_) == plant_at) logits_[5] = planted;
    return {};
  }
  Result<std::span<const float>> logits() override {
    return std::span<const float>(logits_).first(n_logits);
  }

  int64_t skip_at = -1;  // a step that computes nothing, in every run
  size_t n_logits = 16;
  int plant_run = 0;  // counted from 1
  int64_t plant_at = 0;
  float planted = 0;

 private:
  std::vector<int32_t> tokens_;
  std::vector<float> logits_ = std::vector<float>(16);
  int n_runs_ = 0;
};

class ModelBenchTest : public testing::Test {
 protected:
  ModelBenchTest() {
    for (int32_t i = 0; i < 64; ++i) tokens.push_back(i * 7 % 31);
  }
  Result<std::vector<ModelRow>> run() { return ModelBench(steps, tokens, costs, options).run(); }

  std::vector<int32_t> tokens;
  ToySteps steps;
  ModelCosts costs{.bytes_of = [](const ModelWork& w) { return 1e3 * double(w.n_tokens); },
                   .gbps_now = [] { return 2.0; }};
  ModelBenchOptions options{.prompts = {20}, .contexts = {0, 10}, .n_decode = 12, .n_rounds = 3};
};

TEST_F(ModelBenchTest, EveryRoundIsTimedTwiceAndEveryStepVerified) {
  auto rows = run();
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].work.name(), "prefill 20 at 0");
  EXPECT_EQ((*rows)[2].work.name(), "decode 12 at 10");
  EXPECT_EQ((*rows)[0].hashes.size(), 1u);
  EXPECT_EQ((*rows)[1].hashes.size(), 12u);
  for (const ModelRow& row : *rows) {
    EXPECT_EQ(row.seconds.size(), 3u);
    EXPECT_EQ(row.twin_seconds.size(), 3u);
    EXPECT_EQ(row.has_floor(), row.work.is_decode);
  }
  EXPECT_NEAR((*rows)[1].floor_seconds[0], 12e3 / 2e9, 1e-15);  // all bytes, whatever the probes
  EXPECT_NE((*rows)[1].hashes, (*rows)[2].hashes);
}

// The run without a clock is number 1 of a row; A and its twin follow, round by round.
TEST_F(ModelBenchTest, AWrongLogitInAnyTimedRunIsCaught) {
  options.prompts = {};
  options.contexts = {4};
  for (const int run_number : {2, 3, 7}) {
    steps = ToySteps();
    steps.plant_run = run_number;
    steps.plant_at = 4 + 9;
    steps.planted = 1e-6f;
    auto rows = run();
    ASSERT_FALSE(rows.ok()) << run_number;
    EXPECT_EQ(rows.status().code(), Code::wrong_result);
    EXPECT_NE(rows.status().message().find("decode 12 at 4: the logits of step 8"),
              std::string::npos)
        << rows.status().message();
  }
}

TEST_F(ModelBenchTest, AWrongLogitInTheRunWithoutAClockIsCaught) {
  steps.plant_run = 1;
  steps.plant_at = 20;
  steps.planted = 1e-6f;
  EXPECT_EQ(run().status().code(), Code::wrong_result);
}

// The same bits in every round, and no work behind them.
TEST_F(ModelBenchTest, AStepThatComputesNothingIsCaught) {
  options.prompts = {};
  options.contexts = {4};
  steps.skip_at = 4 + 6;
  auto rows = run();
  ASSERT_FALSE(rows.ok());
  EXPECT_NE(rows.status().message().find("step 5 left the logits"), std::string::npos)
      << rows.status().message();
  steps = ToySteps();
  steps.n_logits = 0;
  rows = run();
  ASSERT_FALSE(rows.ok());
  EXPECT_NE(rows.status().message().find("no logits"), std::string::npos);
}

TEST_F(ModelBenchTest, LogitsThatAreNotFiniteAreCaught) {
  for (const float planted :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (const int run_number : {1, 4}) {
      steps = ToySteps();
      steps.plant_run = run_number;
      steps.plant_at = 20;
      steps.planted = planted;
      auto rows = run();
      ASSERT_FALSE(rows.ok()) << run_number;
      EXPECT_NE(rows.status().message().find("not finite at position 19"), std::string::npos)
          << rows.status().message();
    }
}

TEST_F(ModelBenchTest, AWitnessThatDiffersIsCaught) {
  auto rows = run();
  ASSERT_TRUE(rows.ok());
  ToySteps same, other;
  auto n = check_against(same, tokens, *rows);
  ASSERT_TRUE(n.ok()) << n.status().message();
  EXPECT_EQ(*n, 1 + 2 * kWitnessSteps);
  other.plant_run = 3;
  other.plant_at = 12;
  other.planted = 3;
  const auto differs = check_against(other, tokens, *rows);
  EXPECT_EQ(differs.status().code(), Code::wrong_result);
  EXPECT_NE(differs.status().message().find("decode 12 at 10: the logits of step 1"),
            std::string::npos)
      << differs.status().message();
}

// What is printed is computed from the metrics' own numbers.
TEST(ModelRowTest, BestAndMedianHaveOneDenominator) {
  ModelRow row{.work = {true, 10, 0}};
  row.seconds = {1, 2, 4};
  row.twin_seconds = {1, 2, 4};
  row.floor_seconds = {0.5, 1, 0.8};
  EXPECT_EQ(row.rate().value.mid, 5);
  EXPECT_EQ(row.floor_rate(), 12.5);
  const auto metrics = metrics_of({row}, {"model", "m", "", "", "cpu", 2});
  ASSERT_EQ(metrics.size(), 3u);
  EXPECT_EQ(metrics[0].twin.size(), 3u);
  EXPECT_EQ(metrics[0].subject.problem, "decode 10 at 0");
  EXPECT_EQ(metrics[2].name, "floor_percent");
  EXPECT_EQ(metrics[2].value.mid, 40);
  EXPECT_EQ(metrics[2].samples, (std::vector<double>{80, 40, 20}));
}

}  // namespace
}  // namespace millrace::lab
