#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>

#include "base/philox.h"
#include "engine/fixture_test.h"
#include "machine/count_allocations_test.h"

namespace millrace {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

class SamplerTest : public testing::Test {
 protected:
  Sampler make(size_t n_vocab, Device& device) const {
    const PickFrom from{machine_, profile_, force_};
    return Sampler::make(static_cast<int64_t>(n_vocab), from, device).value();
  }
  Sampled draw(const std::vector<float>& logits, const std::vector<int32_t>& before,
               const Sampling& how, std::span<const uint32_t> mask = {}) {
    TokenHistory history(how.penalty_tokens);
    history.assign(before);
    const SampleRow row{.how = how, .history = history, .position = before.size(), .mask = mask};
    Sampled out;
    Sampler sampler = make(logits.size(), *alone_);
    millrace::draw(sampler, *alone_, logits.data(), {&row, 1}, {&out, 1});
    return out;
  }

  const Machine machine_ = find_machine();
  const Profile profile_;
  const Force force_;
  Team one_{1};
  const std::unique_ptr<Device> alone_ = cpu_device(one_);
};

// Many requests, each with all it refers to.
class Requests {
 public:
  Requests(size_t n_rows, size_t n_vocab, uint64_t seed) : n_vocab_(n_vocab), rng_(seed) {
    for (size_t r = 0; r < n_rows * n_vocab; ++r) logits_.push_back(3 * rng_.normal());
    for (size_t r = 0; r < n_rows; ++r) add(r);
  }

  const float* logits() const { return logits_.data(); }
  const std::vector<SampleRow>& rows() const { return rows_; }
  TokenHistory& history(size_t r) { return histories_[r]; }

 private:
  int32_t any_token() { return static_cast<int32_t>(rng_.below(n_vocab_)); }

  void add(size_t r) {
    Sampling& how = hows_.emplace_back();
    how.temperature = r % 4 == 3 ? 0.0f : rng_.uniform(0.5f, 1.5f);
    how.top_k = r % 2 == 0 ? 0 : 40;
    how.top_p = r % 3 == 0 ? 1.0f : 0.9f;
    how.repeat_penalty = r % 3 == 1 ? 1.3f : 1.0f;
    how.penalty_tokens = r % 6 == 1 ? -1 : 32;
    how.n_logprobs = r % 5 == 0 ? 4 : 0;
    how.logprob = r % 5 == 1;
    how.seed = rng_.next_u64();
    if (r % 4 == 1) how.biases = {{any_token(), 5.0f}, {any_token(), -5.0f}};
    TokenHistory& history = histories_.emplace_back(how.penalty_tokens);
    for (int i = 0; i < 100; ++i) history.push(any_token());
    std::vector<uint32_t>& mask = masks_.emplace_back();
    if (r % 3 == 2) mask.resize(n_vocab_ / 32 - r % 2, 0x5a5a0ff0);
    if (r == 7) mask.assign(1, 0);
    if (r == 8) logits_[r * n_vocab_ + 5] = NAN;
    rows_.push_back({.logits_row = static_cast<int>(r),
                     .how = how,
                     .history = history,
                     .position = rng_.below(1000),
                     .choice = static_cast<uint32_t>(r % 3),
                     .mask = mask});
  }

  const size_t n_vocab_;
  Rng rng_;
  std::vector<float> logits_;
  std::deque<Sampling> hows_;  // deques: what rows refer to stays in place
  std::deque<TokenHistory> histories_;
  std::deque<std::vector<uint32_t>> masks_;
  std::vector<SampleRow> rows_;
};

bool same(const Sampled& a, const Sampled& b) {
  return a.draw == b.draw && a.token == b.token && std::memcmp(&a.logprob, &b.logprob, 4) == 0 &&
         a.most_likely.size() == b.most_likely.size() &&
         (a.most_likely.empty() || std::memcmp(a.most_likely.data(), b.most_likely.data(),
                                               a.most_likely.size() * sizeof(TokenLogprob)) == 0);
}

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

TEST_F(SamplerTest, adds_biases) {
  const std::vector<float> logits = {0, 3, 2.9f, -1};
  EXPECT_EQ(draw(logits, {}, {.temperature = 0, .biases = {{3, 4.5f}}}).token, 3);
  EXPECT_EQ(draw(logits, {}, {.temperature = 0, .biases = {{1, -0.2f}}}).token, 2);
}

TEST_F(SamplerTest, draws_what_the_mask_allows) {
  const std::vector<float> logits(100, 0.0f);
  const std::vector<uint32_t> third = {0, 1u << 8}, ends_early = {~0u};
  EXPECT_EQ(draw(logits, {}, {}, third).token, 40);
  EXPECT_LT(draw(logits, {}, {.seed = 3}, ends_early).token, 32);
  const std::vector<uint32_t> longer = {0, 0, 0, 1u << 3, ~0u, ~0u};
  EXPECT_EQ(draw(logits, {}, {}, longer).token, 99);
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

TEST_F(SamplerTest, completions_of_a_request_share_their_logits_and_draw_their_own) {
  const std::vector<float> logits(100, 0.0f);
  const Sampling how{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 7};
  const TokenHistory history;
  std::vector<SampleRow> rows;
  for (uint32_t choice = 0; choice < 8; ++choice)
    rows.push_back({.how = how, .history = history, .choice = choice});
  std::vector<Sampled> out(rows.size());
  Sampler sampler = make(100, *alone_);
  millrace::draw(sampler, *alone_, logits.data(), rows, out);
  EXPECT_EQ(out[0].token, draw(logits, {}, how).token);
  int n_same = 0;
  for (const Sampled& s : out) n_same += s.token == out[0].token;
  EXPECT_LT(n_same, 4);
}

TEST_F(SamplerTest, reports_log_probabilities_of_the_model) {
  const Sampled s = draw({1, 2, 0}, {1}, {.temperature = 0, .repeat_penalty = 9, .n_logprobs = 2});
  const double total = std::log(std::exp(1.0) + std::exp(2.0) + 1);
  EXPECT_EQ(s.token, 0);
  EXPECT_NEAR(s.logprob, 1 - total, 1e-6);
  ASSERT_EQ(s.most_likely.size(), 2u);
  EXPECT_EQ(s.most_likely[0].token, 1);
  EXPECT_NEAR(s.most_likely[0].logprob, 2 - total, 1e-6);
  const Sampled alone = draw({1, 2, 0}, {}, {.temperature = 0, .logprob = true});
  EXPECT_NEAR(alone.logprob, 2 - total, 1e-6);
  EXPECT_TRUE(alone.most_likely.empty());
}

// As the sampler drew that edited logits on the host and summed in one go (class
// cpu.sample.sorted).
TEST_F(SamplerTest, draws_what_it_drew) {
  const struct {
    int32_t token;
    float logprob;
  } kExpected[] = {
      {1118, -5.3124342f},  {862, -4.09935951f},  {2886, -3.74854088f}, {2630, -4.31095839f},
      {599, -3.80404544f},  {1480, -4.04942894f}, {975, -4.2964983f},   {2942, -3.48493052f},
      {1106, -7.33757734f}, {2033, -3.84073567f}, {1204, -3.5415628f},  {1763, -4.11752987f},
      {1060, -3.94181204f}, {2543, -3.96814299f}, {1750, -4.87868452f}, {2558, -3.41879535f},
      {2986, -5.64550304f}, {2411, -3.49022007f}, {1964, -3.83250856f}, {2173, -3.97011876f},
      {2271, -5.14038372f}, {1997, -4.07646036f}, {2662, -4.45131063f}, {2854, -3.77487707f},
  };
  Rng rng(7);
  std::vector<int32_t> before;
  for (const auto& expected : kExpected) {
    const size_t i = before.size();
    std::vector<float> logits(3000);
    for (float& x : logits) {
      const float u = rng.uniform(-1.0f, 1.0f);
      x = 12 * u * u * u * u * u;
    }
    const Sampled s = draw(logits, before,
                           {.temperature = i % 4 == 0 ? 1.5f : 0.9f,
                            .top_k = i % 2 == 0 ? 0 : 40,
                            .top_p = i % 3 == 0 ? 1.0f : 0.95f,
                            .min_p = i % 5 == 0 ? 0.05f : 0.0f,
                            .repeat_penalty = 1.3f,
                            .presence_penalty = 0.1f,
                            .frequency_penalty = 0.2f,
                            .seed = 99,
                            .n_logprobs = 1});
    EXPECT_EQ(s.token, expected.token) << "position " << i;
    EXPECT_NEAR(s.logprob, expected.logprob, 2e-6);
    before.push_back(s.token);
  }
}

TEST_F(SamplerTest, refuses_what_makes_no_sense) {
  EXPECT_TRUE(validate(Sampling{}).ok());
  EXPECT_TRUE(validate({.top_k = INT32_MAX}).ok());
  EXPECT_TRUE(validate({.biases = {{99, -100}}}, 100).ok());
  const std::vector<Sampling> bad = {
      {.temperature = -1},
      {.temperature = NAN},
      {.temperature = kInf},
      {.top_k = -1},
      {.top_p = 1.5f},
      {.top_p = NAN},
      {.min_p = -0.1f},
      {.min_p = NAN},
      {.repeat_penalty = 0},
      {.repeat_penalty = NAN},
      {.presence_penalty = kInf},
      {.frequency_penalty = -kInf},
      {.penalty_tokens = -2},
      {.n_logprobs = -1},
      {.n_logprobs = 101},
      {.biases = {{-1, 1}}},
      {.biases = {{100, 1}}},
      {.biases = {{1, kInf}}},
      {.biases = {{1, -kInf}}},
      {.biases = {{1, NAN}}},
  };
  for (size_t i = 0; i < bad.size(); ++i) {
    const Status status = validate(bad[i], 100);
    EXPECT_EQ(status.code(), Code::invalid_argument) << "case " << i;
    EXPECT_FALSE(status.message().empty());
  }
}

// Whatever is asked, a token of the vocabulary comes out, or word that there is none.
TEST_F(SamplerTest, survives_what_validate_refuses) {
  const std::vector<float> logits = {0, 3, 2.9f, -1, 1};
  const float nonsense[] = {NAN, kInf, -kInf, 0, -1, 1e30f, 1e-42f};
  for (const float a : nonsense)
    for (const float b : nonsense) {
      const Sampled s = draw(logits, {1, 1, 2},
                             {.temperature = a,
                              .top_k = a > 0 ? INT32_MAX : INT32_MIN,
                              .top_p = b,
                              .min_p = a,
                              .repeat_penalty = b,
                              .presence_penalty = a,
                              .frequency_penalty = b,
                              .n_logprobs = 1 << 30,
                              .biases = {{0, a}, {3, b}, {-7, 1}, {5, 1}, {INT32_MAX, 1}}});
      EXPECT_TRUE(s.draw == Draw::none_allowed || (s.token >= 0 && s.token < 5)) << a << " " << b;
    }
}

TEST_F(SamplerTest, says_why_nothing_was_drawn) {
  const std::vector<uint32_t> none = {0};
  const Sampled masked = draw({1, 2, 3}, {}, {}, none);
  EXPECT_EQ(masked.draw, Draw::none_allowed);
  EXPECT_EQ(status_of(masked, 4).code(), Code::invalid_argument);
  const Sampled broken = draw({1, NAN, 3}, {}, {.n_logprobs = 2});
  EXPECT_EQ(broken.draw, Draw::not_finite);
  EXPECT_TRUE(broken.most_likely.empty());
  EXPECT_EQ(status_of(broken, 17).message(),
            "the model's logits are not finite (NaN) at position 17");
  EXPECT_EQ(draw({-kInf, -kInf}, {}, {}).draw, Draw::not_finite);
  EXPECT_TRUE(status_of(draw({1, 2}, {}, {}), 0).ok());
}

class SamplerThreads : public SamplerTest {};

TEST_F(SamplerThreads, a_row_among_others_is_the_row_alone) {
  constexpr size_t kVocab = 4000;
  Requests requests(12, kVocab, 3);
  const auto& rows = requests.rows();
  Sampler sampler = make(kVocab, *alone_);
  std::vector<Sampled> alone(rows.size()), together(rows.size());
  for (size_t r = 0; r < rows.size(); ++r)
    millrace::draw(sampler, *alone_, requests.logits(), {&rows[r], 1}, {&alone[r], 1});
  EXPECT_EQ(alone[7].draw, Draw::none_allowed);
  EXPECT_EQ(alone[8].draw, Draw::not_finite);
  EXPECT_EQ(alone[5].most_likely.size(), 4u);
  for (const int n_lanes : {1, 2, 3, 5}) {
    Team team(n_lanes);
    const auto device = cpu_device(team);
    Sampler shared = make(kVocab, *device);
    for (size_t n = 1; n <= rows.size(); ++n) {
      const auto some = std::span(rows).last(n);
      millrace::draw(shared, *device, requests.logits(), some, std::span(together).last(n));
      for (size_t r = rows.size() - n; r < rows.size(); ++r)
        EXPECT_TRUE(same(together[r], alone[r])) << "row " << r << " of the last " << n;
    }
  }
}

TEST_F(SamplerThreads, allocates_nothing_once_warm) {
  constexpr size_t kVocab = 4000;
  Requests requests(6, kVocab, 4);
  Team team(3);
  const auto device = cpu_device(team);
  Sampler sampler = make(kVocab, *device);
  std::vector<Sampled> out(6);
  const auto step = [&] {
    const auto program = sampler.gather(requests.logits(), requests.rows());
    const bool ok = program.ok() && device->run(*program.value(), 0, 1).ok();
    sampler.take(out);
    for (size_t r = 0; r < out.size(); ++r) requests.history(r).push(out[r].token);
    return ok;
  };
  ASSERT_TRUE(step());
  const int64_t before = n_allocations();
  bool ok = true;
  for (int i = 0; i < 50; ++i) ok = step() && ok;
  EXPECT_EQ(n_allocations(), before);
  EXPECT_TRUE(ok);
}

// What an engine does that draws inside its own step: the logits come after gather.
TEST_F(SamplerTest, gathers_before_the_logits_are_there) {
  std::vector<float> logits(50, 0.0f);
  const Sampling how{.temperature = 0};
  const TokenHistory history;
  const SampleRow row{.how = how, .history = history};
  Sampler sampler = make(50, *alone_);
  const auto program = sampler.gather(logits.data(), {&row, 1});
  ASSERT_TRUE(program.ok());
  logits[33] = 1;
  ASSERT_TRUE(alone_->run(*program.value(), 0, 1).ok());
  Sampled out;
  sampler.take({&out, 1});
  EXPECT_EQ(out.token, 33);
}

}  // namespace
}  // namespace millrace
