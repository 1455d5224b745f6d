// Promise 1 end to end: one prompt alone, among others, in any chunking of its prefill and with any
// number of lanes gives the same logits, bit for bit.
#include <gtest/gtest.h>

#include <cstring>

#include "base/philox.h"
#include "engine/fixture_test.h"
#include "engine/sampler.h"

namespace millrace {
namespace {

constexpr EngineOptions kOptions{.n_ctx = 192, .max_seqs = 4, .max_rows = 96};

struct Trace {
  std::vector<int32_t> tokens;
  std::vector<std::vector<float>> logits;  // after the prompt, and after each generated token

  bool operator==(const Trace& other) const {
    if (tokens != other.tokens || logits.size() != other.logits.size()) return false;
    for (size_t i = 0; i < logits.size(); ++i)
      if (std::memcmp(logits[i].data(), other.logits[i].data(), logits[i].size() * 4) != 0)
        return false;
    return true;
  }
};

std::vector<int32_t> random_prompt(Rng& rng, int64_t n_vocab) {
  std::vector<int32_t> out(1 + rng.below(100));
  for (int32_t& token : out)
    token = static_cast<int32_t>(rng.below(static_cast<uint64_t>(n_vocab)));
  return out;
}

// Takes what a step left for a sequence: its logits, and the next token.
void take(Engine& engine, Sampler& sampler, int seq, const Sampling& sampling, Trace& trace) {
  const auto logits = engine.logits(seq);
  if (logits.empty()) return;
  trace.logits.emplace_back(logits.begin(), logits.end());
  const auto sampled = sampler.sample(logits, engine.tokens(seq), sampling);
  ASSERT_TRUE(sampled.ok());
  trace.tokens.push_back(sampled.value().token);
  ASSERT_TRUE(engine.append(seq, sampled.value().token).ok());
}

constexpr size_t kGenerated = 12;

Trace alone(Loaded& loaded, const std::vector<int32_t>& prompt, const Sampling& sampling) {
  Engine& engine = *loaded.engine;
  auto sampler = Sampler::make(engine.config().n_vocab, loaded.pick_from());
  Trace trace;
  const int seq = engine.open().value();
  EXPECT_TRUE(engine.set_tokens(seq, prompt).ok());
  while (trace.tokens.size() < kGenerated) {
    EXPECT_TRUE(engine.step().ok());
    take(engine, sampler.value(), seq, sampling, trace);
  }
  engine.close(seq);
  return trace;
}

// All prompts at once, joining at random steps, each step of a random number of rows.
std::vector<Trace> together(Loaded& loaded, const std::vector<std::vector<int32_t>>& prompts,
                            const std::vector<Sampling>& samplings, Rng& rng) {
  Engine& engine = *loaded.engine;
  auto sampler = Sampler::make(engine.config().n_vocab, loaded.pick_from());
  std::vector<Trace> traces(prompts.size());
  std::vector<int> seqs(prompts.size(), -1);
  for (size_t n_done = 0; n_done < prompts.size();) {
    for (size_t i = 0; i < prompts.size(); ++i) {
      if (seqs[i] >= 0 || traces[i].tokens.size() == kGenerated || rng.below(3) != 0) continue;
      if (auto seq = engine.open(); seq.ok()) {
        seqs[i] = seq.value();
        EXPECT_TRUE(engine.set_tokens(seqs[i], prompts[i]).ok());
      }
    }
    EXPECT_TRUE(engine.step(1 + static_cast<int64_t>(rng.below(96))).ok());
    for (size_t i = 0; i < prompts.size(); ++i) {
      if (seqs[i] < 0) continue;
      take(engine, sampler.value(), seqs[i], samplings[i], traces[i]);
      if (traces[i].tokens.size() < kGenerated) continue;
      engine.close(seqs[i]);
      seqs[i] = -1;
      ++n_done;
    }
  }
  return traces;
}

class PromiseOneThreads : public testing::TestWithParam<std::string> {};

TEST_P(PromiseOneThreads, same_request_same_tokens) {
  const std::string path = GetParam() == "tiny" ? tiny_model() : fixture(GetParam());
  auto one = load(path, 1, kOptions);
  ASSERT_NE(one, nullptr);
  const int64_t n_vocab = one->engine->config().n_vocab;
  Rng rng(20261115);
  std::vector<std::vector<int32_t>> prompts;
  std::vector<Sampling> samplings;
  std::vector<Trace> expected;
  for (int i = 0; i < 6; ++i) {
    prompts.push_back(random_prompt(rng, n_vocab));
    samplings.push_back({.temperature = i % 2 == 0 ? 0.9f : 0.0f,
                         .repeat_penalty = i % 3 == 0 ? 1.1f : 1.0f,
                         .seed = rng.next_u64()});
    expected.push_back(alone(*one, prompts.back(), samplings.back()));
  }
  for (const int n_lanes : {1, 2, 3}) {
    auto loaded = load(path, n_lanes, kOptions);
    ASSERT_NE(loaded, nullptr);
    for (int round = 0; round < 3; ++round) {
      const auto traces = together(*loaded, prompts, samplings, rng);
      for (size_t i = 0; i < prompts.size(); ++i)
        EXPECT_TRUE(traces[i] == expected[i]) << "prompt " << i << ", " << n_lanes << " lanes";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engine, PromiseOneThreads,
                         testing::Values("llama_tied", "qwen2_biases", "qwen3_yarn", "qwen3_moe",
                                         "tiny"),
                         [](const auto& info) { return info.param; });

TEST(Engine, keeps_what_a_new_prompt_shares_with_the_old) {
  auto loaded = load(fixture("llama_tied"), 1, kOptions);
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const std::vector<int32_t> first = {1, 2, 3, 4, 5, 6}, second = {1, 2, 3, 9, 9};
  const int seq = engine.open().value();
  ASSERT_EQ(engine.set_tokens(seq, first).value(), 0);
  ASSERT_TRUE(engine.step().ok());
  ASSERT_EQ(engine.set_tokens(seq, second).value(), 3);
  ASSERT_TRUE(engine.step().ok());
  const std::vector<float> kept(engine.logits(seq).begin(), engine.logits(seq).end());
  engine.close(seq);
  const int fresh = engine.open().value();
  ASSERT_TRUE(engine.set_tokens(fresh, second).ok());
  ASSERT_TRUE(engine.step().ok());
  EXPECT_EQ(std::memcmp(kept.data(), engine.logits(fresh).data(), kept.size() * 4), 0);
}

TEST(Engine, a_row_reads_the_experts_it_uses) {
  auto dense = load(fixture("llama_tied"), 1, kOptions);
  ASSERT_NE(dense, nullptr);
  const Network& whole = dense->engine->network();
  EXPECT_EQ(whole.weight_bytes_of_a_row(), whole.weight_bytes());
  auto mixture = load(fixture("qwen3_moe"), 1, kOptions);
  ASSERT_NE(mixture, nullptr);
  const Network& part = mixture->engine->network();
  const Config& c = part.config();
  const int64_t n_unused = c.n_experts - c.n_experts_used;
  const int64_t unused = 3 * c.n_layers * n_unused * c.n_ff * c.n_embd;       // gate, up, down
  EXPECT_EQ(part.weight_bytes() - part.weight_bytes_of_a_row(), unused * 2);  // in bf16
}

TEST(Engine, refuses_what_does_not_fit) {
  auto loaded = load(fixture("llama_tied"), 1, {.n_ctx = 4});
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const int seq = engine.open().value();
  EXPECT_FALSE(engine.open().ok());
  EXPECT_FALSE(engine.set_tokens(seq, {1, 2, 3, 4, 5}).ok());
  EXPECT_FALSE(engine.set_tokens(seq, {1, 128}).ok());
  EXPECT_FALSE(engine.set_tokens(seq, {-1}).ok());
  ASSERT_TRUE(engine.set_tokens(seq, {1, 2, 3, 4}).ok());
  EXPECT_FALSE(engine.append(seq, 5).ok());
}

}  // namespace
}  // namespace millrace
