#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>

namespace millrace {
namespace {

class SamplerTest : public testing::Test {
 protected:
  Sampled draw(std::vector<float> logits, const std::vector<int32_t>& before, const Sampling& s) {
    auto sampler = Sampler::make(static_cast<int64_t>(logits.size()), {machine_, profile_, force_});
    return sampler.value().sample(logits, before, s).value();
  }

  const Machine machine_ = find_machine();
  const Profile profile_;
  const Force force_;
};

TEST_F(SamplerTest, takes_the_most_likely_at_temperature_0) {
  EXPECT_EQ(draw({0, 3, 1, 3}, {}, {.temperature = 0}).token, 1);
}

TEST_F(SamplerTest, penalises_what_was_said) {
  const std::vector<float> logits = {0, 3, 2.9f, -1};
  EXPECT_EQ(draw(logits, {1}, {.temperature = 0, .repeat_penalty = 1.2f}).token, 2);
  EXPECT_EQ(draw(logits, {1}, {.temperature = 0, .presence_penalty = 0.2f}).token, 2);
  EXPECT_EQ(draw(logits, {1, 1}, {.temperature = 0, .frequency_penalty = 0.06f}).token, 2);
  EXPECT_EQ(
      draw(logits, {1, 0, 0}, {.temperature = 0, .repeat_penalty = 2, .penalty_tokens = 2}).token,
      1);
}

TEST_F(SamplerTest, draws_by_seed_and_position_alone) {
  const std::vector<float> logits(100, 0.0f);
  const Sampling sampling{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 7};
  const int32_t token = draw(logits, {1, 2}, sampling).token;
  EXPECT_EQ(draw(logits, {3, 4}, sampling).token, token);
  int n_same = 0;
  for (int32_t n = 0; n < 20; ++n)
    n_same +=
        draw(logits, std::vector<int32_t>(static_cast<size_t>(n), 0), sampling).token == token;
  EXPECT_LT(n_same, 5);
}

TEST_F(SamplerTest, reports_log_probabilities_of_the_model) {
  const Sampled s = draw({1, 2, 0}, {1}, {.temperature = 0, .repeat_penalty = 9, .n_logprobs = 2});
  const double total = std::log(std::exp(1.0) + std::exp(2.0) + 1);
  EXPECT_EQ(s.token, 0);
  EXPECT_NEAR(s.logprob, 1 - total, 1e-6);
  ASSERT_EQ(s.most_likely.size(), 2u);
  EXPECT_EQ(s.most_likely[0].token, 1);
  EXPECT_NEAR(s.most_likely[0].logprob, 2 - total, 1e-6);
}

TEST_F(SamplerTest, refuses_what_makes_no_sense) {
  EXPECT_TRUE(validate(Sampling{}).ok());
  EXPECT_FALSE(validate({.temperature = -1}).ok());
  EXPECT_FALSE(validate({.temperature = NAN}).ok());
  EXPECT_FALSE(validate({.top_p = 1.5f}).ok());
  EXPECT_FALSE(validate({.repeat_penalty = 0}).ok());
}

}  // namespace
}  // namespace millrace
