// Pages of layers with a window are given back as it moves on, and a page that a fork shares is
// never written.
#include <gtest/gtest.h>

#include "engine/fixture_test.h"

namespace millrace {
namespace {

std::vector<int32_t> counted(int32_t n, int32_t step = 37) {
  std::vector<int32_t> out;
  for (int32_t i = 0; i < n; ++i) out.push_back((i * step + 5) % 128);
  return out;
}

std::vector<float> last_logits(Engine& engine) {
  const auto logits = engine.logits(0).value();
  return {logits.begin(), logits.end()};
}

// One sequence and steps of 64: what a window of 48 sees lies in two pages, and a step that begins
// inside a page needs two more.
const EngineOptions kLong{.n_ctx = 2048, .max_rows = 64};

TEST(KvWindow, gives_pages_back_and_a_small_pool_suffices) {
  const MadeFile file("tiny-gemma3", "q8_0");
  auto loaded = load(file.path(), 1, kLong);
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  ASSERT_EQ(engine.n_groups(), 2u);
  const int64_t all = engine.n_free_pages(0), windowed = engine.n_free_pages(1);
  EXPECT_EQ(all, 2048 / kPageTokens);
  EXPECT_EQ(windowed, 3);
  const int seq = engine.open().value();
  const std::vector<int32_t> prompt = counted(2047);
  for (size_t done = 0; done < prompt.size(); done += 50) {
    const size_t n = std::min<size_t>(50, prompt.size() - done);
    ASSERT_TRUE(engine.step({.seq = seq, .tokens = std::span(prompt).subspan(done, n)}).ok());
    const auto n_tokens = static_cast<int64_t>(done + n);
    EXPECT_EQ(all - engine.n_free_pages(0), (n_tokens + 63) / 64);
    // From the page of the first token that the next row sees to that of the last one computed.
    const int64_t first = std::max<int64_t>(n_tokens - 47, 0) / 64;
    EXPECT_EQ(windowed - engine.n_free_pages(1), (n_tokens + 63) / 64 - first) << n_tokens;
  }
  engine.close(seq);
  EXPECT_EQ(engine.n_free_pages(0), all);
  EXPECT_EQ(engine.n_free_pages(1), windowed);
}

TEST(KvWindow, a_model_of_windows_alone_holds_few_pages) {
  const MadeFile file("tiny-llama", "q8_0", 100);
  auto loaded = load(file.path(), 1, kLong);
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  ASSERT_EQ(engine.n_groups(), 1u);
  const int64_t windowed = engine.n_free_pages();
  EXPECT_EQ(windowed, 4);
  const int seq = engine.open().value();
  EXPECT_TRUE(compute(engine, seq, counted(2048)).ok());
  EXPECT_EQ(windowed - engine.n_free_pages(), 2);  // tokens 1949 to 2048 lie in pages 30 and 31
}

TEST(KvWindow, what_is_gone_cannot_be_kept_or_forked) {
  const MadeFile file("tiny-gemma3", "q8_0");
  EngineOptions options = kLong;
  options.max_seqs = 2;
  auto loaded = load(file.path(), 1, options);
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const int seq = engine.open().value();
  ASSERT_TRUE(compute(engine, seq, counted(600)).ok());
  EXPECT_EQ(engine.fork(seq, 300).status().code(), Code::unavailable);
  const auto fork = engine.fork(seq, 595);
  ASSERT_TRUE(fork.ok()) << fork.status().message();
  engine.close(fork.value());
  EXPECT_EQ(engine.keep(seq, 595), 595);
  EXPECT_EQ(engine.keep(seq, 300), 0);
}

struct Twin {
  std::unique_ptr<Loaded> loaded = load(fixture("llama_tied"), 1, {.n_ctx = 256, .max_seqs = 3});
  Engine& engine = *loaded->engine;

  std::vector<float> fresh(std::span<const int32_t> tokens) {
    const int seq = engine.open().value();
    EXPECT_TRUE(compute(engine, seq, tokens).ok());
    engine.close(seq);
    return last_logits(engine);
  }
};

TEST(KvShared, a_fork_inside_a_full_page_does_not_write_it) {
  Twin t;
  const std::vector<int32_t> prompt = counted(130), other = counted(50, 11);
  const int seq = t.engine.open().value();
  ASSERT_TRUE(compute(t.engine, seq, std::span(prompt).first(129)).ok());
  const int fork = t.engine.fork(seq, 90).value();
  ASSERT_TRUE(compute(t.engine, fork, other).ok());
  ASSERT_TRUE(compute(t.engine, seq, std::span(prompt).last(1)).ok());
  const std::vector<float> got = last_logits(t.engine);
  EXPECT_EQ(got, t.fresh(prompt));
}

TEST(KvShared, taking_back_leaves_a_shared_page_alone) {
  Twin t;
  const std::vector<int32_t> prompt = counted(130), other = counted(50, 11);
  const int seq = t.engine.open().value();
  ASSERT_TRUE(compute(t.engine, seq, std::span(prompt).first(129)).ok());
  const int fork = t.engine.fork(seq, 129).value();
  EXPECT_EQ(t.engine.keep(seq, 90), 64);
  ASSERT_TRUE(compute(t.engine, seq, other).ok());
  ASSERT_TRUE(compute(t.engine, fork, std::span(prompt).last(1)).ok());
  const std::vector<float> got = last_logits(t.engine);
  EXPECT_EQ(got, t.fresh(prompt));
  t.engine.close(fork);
  EXPECT_EQ(t.engine.keep(seq, 100), 100);  // nobody else has it any more
}

}  // namespace
}  // namespace millrace
