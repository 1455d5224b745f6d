// Promise 1 end to end: one prompt alone, among others, in any chunking of its prefill and with any
// number of lanes gives the same logits, bit for bit.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/philox.h"
#include "engine/fixture_test.h"
#include "engine/sampler.h"

namespace millrace {
namespace {

const EngineOptions kOptions{.n_ctx = 192, .max_seqs = 4, .max_rows = 96};

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

// A request as tests drive it: what it has still to compute, and what came of it.
struct Running {
  int seq = -1;
  std::vector<int32_t> pending;  // computed next
  Trace trace;

  bool is_done() const;
};

constexpr size_t kGenerated = 12;

bool Running::is_done() const {
  return trace.tokens.size() == kGenerated;
}

// Takes what a step left for work i: its logits, and the next token.
void take(Engine& engine, Sampler& sampler, size_t work, const Sampling& sampling, Running& r) {
  const auto logits = engine.logits(work).value();
  const auto row_of = (logits.data() - engine.logits_on_device()) / engine.config().n_vocab;
  r.trace.logits.emplace_back(logits.begin(), logits.end());
  TokenHistory history(sampling.penalty_tokens);
  history.assign(engine.tokens(r.seq));
  const SampleRow row{.logits_row = static_cast<int>(row_of),
                      .how = sampling,
                      .history = history,
                      .position = engine.tokens(r.seq).size()};
  Sampled sampled;
  draw(sampler, engine.device(), engine.logits_on_device(), {&row, 1}, {&sampled, 1});
  ASSERT_TRUE(status_of(sampled, row.position).ok());
  r.trace.tokens.push_back(sampled.token);
  r.pending = {sampled.token};
}

Trace alone(Loaded& loaded, const std::vector<int32_t>& prompt, const Sampling& sampling) {
  Engine& engine = *loaded.engine;
  auto sampler = Sampler::make(engine.config().n_vocab, loaded.pick_from(), engine.device());
  Running r{engine.open().value(), prompt, {}};
  while (!r.is_done()) {
    EXPECT_TRUE(compute(engine, r.seq, r.pending).ok());
    take(engine, sampler.value(), 0, sampling, r);
  }
  engine.close(r.seq);
  return r.trace;
}

// All prompts at once, joining at random steps, each step of a random number of rows.
std::vector<Trace> together(Loaded& loaded, const std::vector<std::vector<int32_t>>& prompts,
                            const std::vector<Sampling>& samplings, Rng& rng) {
  Engine& engine = *loaded.engine;
  auto sampler = Sampler::make(engine.config().n_vocab, loaded.pick_from(), engine.device());
  std::vector<Running> all(prompts.size());
  for (size_t n_done = 0; n_done < prompts.size();) {
    for (size_t i = 0; i < prompts.size(); ++i) {
      if (all[i].seq >= 0 || all[i].is_done() || rng.below(3) != 0) continue;
      if (auto seq = engine.open(); seq.ok()) {
        all[i].seq = seq.value();
        all[i].pending = prompts[i];
      }
    }
    std::vector<Work> batch;
    std::vector<size_t> of;
    size_t room = 1 + rng.below(96);
    for (size_t i = 0; i < prompts.size() && room > 0; ++i) {
      if (all[i].seq < 0) continue;
      const size_t n = std::min(room, all[i].pending.size());
      const bool reaches_end = n == all[i].pending.size();
      batch.push_back({all[i].seq, std::span(all[i].pending).first(n),
                       reaches_end ? Work::Logits::last : Work::Logits::none});
      of.push_back(i);
      room -= n;
    }
    const Status status = engine.step(batch);
    EXPECT_TRUE(status.ok()) << status.message();
    for (size_t w = 0; w < batch.size(); ++w) {
      Running& r = all[of[w]];
      const size_t n = batch[w].tokens.size();
      if (batch[w].wants == Work::Logits::none) {
        r.pending.erase(r.pending.begin(), r.pending.begin() + static_cast<ptrdiff_t>(n));
        continue;
      }
      take(engine, sampler.value(), w, samplings[of[w]], r);
      if (!r.is_done()) continue;
      engine.close(r.seq);
      r.seq = -1;
      ++n_done;
    }
  }
  std::vector<Trace> traces;
  for (Running& r : all) traces.push_back(std::move(r.trace));
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

std::vector<float> copy_of(std::span<const float> logits) {
  return {logits.begin(), logits.end()};
}

TEST(Engine, keeps_what_a_new_prompt_shares_with_the_old) {
  auto loaded = load(fixture("llama_tied"), 1, kOptions);
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const std::vector<int32_t> first = {1, 2, 3, 4, 5, 6}, second = {1, 2, 3, 9, 9};
  const int seq = engine.open().value();
  ASSERT_EQ(keep_shared(engine, seq, first), 0);
  ASSERT_TRUE(compute(engine, seq, first).ok());
  ASSERT_EQ(keep_shared(engine, seq, second), 3);
  ASSERT_TRUE(compute(engine, seq, std::span(second).subspan(3)).ok());
  const std::vector<float> kept = copy_of(engine.logits(0).value());
  engine.close(seq);
  const int fresh = engine.open().value();
  ASSERT_TRUE(compute(engine, fresh, second).ok());
  EXPECT_EQ(kept, copy_of(engine.logits(0).value()));
}

std::vector<int32_t> counted(int32_t n) {
  std::vector<int32_t> out;
  for (int32_t i = 0; i < n; ++i) out.push_back((i * 37 + 5) % 128);
  return out;
}

TEST(Engine, a_fork_shares_full_pages_and_copies_the_rest) {
  auto loaded = load(fixture("llama_tied"), 2, kOptions);
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const std::vector<int32_t> prompt = counted(100);
  const int seq = engine.open().value();
  ASSERT_TRUE(compute(engine, seq, prompt).ok());
  const int64_t n_free = engine.n_free_pages();
  const int copy = engine.fork(seq, 90).value();
  EXPECT_EQ(engine.n_free_pages(), n_free - 1);  // 64 shared, 26 copied
  const std::vector<int32_t> other = {7, 8, 9};
  ASSERT_TRUE(compute(engine, copy, other).ok());
  const std::vector<float> forked = copy_of(engine.logits(0).value());
  engine.close(seq);
  std::vector<int32_t> whole(prompt.begin(), prompt.begin() + 90);
  whole.insert(whole.end(), other.begin(), other.end());
  const int fresh = engine.open().value();
  ASSERT_TRUE(compute(engine, fresh, whole).ok());
  EXPECT_EQ(forked, copy_of(engine.logits(0).value()));
  engine.close(copy);
  engine.close(fresh);
  EXPECT_EQ(engine.n_free_pages(), 4 * 3);
}

// The tokens after the first n of `prompt` are others; the logits must be those of a fresh
// sequence.
void expect_as_fresh(Engine& engine, int seq, std::vector<int32_t> begin) {
  const std::vector<int32_t> others = {7, 8, 9, 10, 11};
  ASSERT_TRUE(compute(engine, seq, others).ok());
  const std::vector<float> got = copy_of(engine.logits(0).value());
  begin.insert(begin.end(), others.begin(), others.end());
  const int fresh = engine.open().value();
  ASSERT_TRUE(compute(engine, fresh, begin).ok());
  EXPECT_EQ(got, copy_of(engine.logits(0).value()));
  engine.close(fresh);
}

TEST(Engine, a_fork_inside_a_full_page_leaves_the_original_alone) {
  auto loaded = load(fixture("llama_tied"), 1, kOptions);
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const std::vector<int32_t> prompt = counted(100);
  const int seq = engine.open().value();
  ASSERT_TRUE(compute(engine, seq, prompt).ok());
  const int copy = engine.fork(seq, 50).value();
  expect_as_fresh(engine, copy, {prompt.begin(), prompt.begin() + 50});
  expect_as_fresh(engine, seq, prompt);
}

TEST(Engine, what_is_kept_is_never_written_into_a_shared_page) {
  auto loaded = load(fixture("llama_tied"), 1, kOptions);
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const std::vector<int32_t> prompt = counted(130);
  const int seq = engine.open().value();
  ASSERT_TRUE(compute(engine, seq, std::span(prompt).first(96)).ok());
  ASSERT_TRUE(compute(engine, seq, std::span(prompt).subspan(96)).ok());
  const int copy = engine.fork(seq, 130).value();
  EXPECT_EQ(engine.keep(copy, 100), 64);  // the second page is shared
  expect_as_fresh(engine, copy, {prompt.begin(), prompt.begin() + 64});
  expect_as_fresh(engine, seq, prompt);
  engine.close(copy);
  EXPECT_EQ(engine.keep(seq, 100), 100);
  expect_as_fresh(engine, seq, {prompt.begin(), prompt.begin() + 100});
}

// What a failed step must leave alone: tokens, pages, and the result of trying again.
void expect_failure_changes_nothing(std::string_view failing_phase) {
  bool fails = false;
  EngineOptions options = kOptions;
  options.fault = [&](std::string_view phase) {
    if (fails && phase == failing_phase) return error(Code::unavailable, "made to fail");
    return Status();
  };
  auto loaded = load(fixture("llama_tied"), 2, options);
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const std::vector<int32_t> prompt = counted(120);
  const int a = engine.open().value(), b = engine.open().value();
  ASSERT_TRUE(compute(engine, a, std::span(prompt).first(60)).ok());
  const int64_t n_free = engine.n_free_pages();
  const std::vector<Work> batch = {{.seq = a, .tokens = std::span(prompt).subspan(60, 40)},
                                   {.seq = b, .tokens = std::span(prompt).first(20)}};
  fails = true;
  EXPECT_EQ(engine.step(batch).code(), Code::unavailable);
  EXPECT_EQ(engine.tokens(a).size(), 60u);
  EXPECT_EQ(engine.tokens(b).size(), 0u);
  EXPECT_EQ(engine.n_free_pages(), n_free);
  fails = false;
  ASSERT_TRUE(engine.step(batch).ok());
  const std::vector<float> after = copy_of(engine.logits(0).value());
  engine.close(a);
  const int fresh = engine.open().value();
  ASSERT_TRUE(compute(engine, fresh, std::span(prompt).first(96)).ok());
  ASSERT_TRUE(compute(engine, fresh, std::span(prompt).subspan(96, 4)).ok());
  EXPECT_EQ(after, copy_of(engine.logits(0).value()));
}

TEST(EngineFailure, no_pages_changes_nothing) {
  expect_failure_changes_nothing("reserve");
}
TEST(EngineFailure, a_failing_run_changes_nothing) {
  expect_failure_changes_nothing("run");
}

// At every place where a device can fail: in front of the step, in the middle, when all KV is
// written already, and when the result is waited for.
TEST(EngineFailure, a_device_that_fails_changes_nothing) {
  using Fails = FaultyDevice::Fails;
  struct Fault {
    Fails what;
    bool late;
  };
  FaultyDevice* device = nullptr;
  auto loaded = load(fixture("llama_tied"), 2, kOptions, &device);
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const std::vector<int32_t> prompt = counted(120);
  const int fresh = engine.open().value();
  ASSERT_TRUE(compute(engine, fresh, std::span(prompt).first(96)).ok());
  ASSERT_TRUE(compute(engine, fresh, std::span(prompt).subspan(96, 4)).ok());
  const std::vector<float> right = copy_of(engine.logits(0).value());
  engine.close(fresh);
  for (const Fault fault : {Fault{Fails::upload, false}, Fault{Fails::run, false},
                            Fault{Fails::run, true}, Fault{Fails::wait, false}}) {
    const int a = engine.open().value(), b = engine.open().value();
    ASSERT_TRUE(compute(engine, a, std::span(prompt).first(60)).ok());
    const int64_t n_free = engine.n_free_pages();
    const std::vector<Work> batch = {{.seq = a, .tokens = std::span(prompt).subspan(60, 40)},
                                     {.seq = b, .tokens = std::span(prompt).first(20)}};
    device->fail_at(fault.what, fault.late);
    EXPECT_EQ(engine.step(batch).code(), Code::io_error);
    EXPECT_EQ(engine.tokens(a).size(), 60u);
    EXPECT_EQ(engine.tokens(b).size(), 0u);
    EXPECT_EQ(engine.n_free_pages(), n_free);
    ASSERT_TRUE(engine.step(batch).ok());
    EXPECT_EQ(right, copy_of(engine.logits(0).value()));
    engine.close(a);
    engine.close(b);
  }
}

// A sequence of the tree: what failed is not remembered.
TEST(EngineFailure, what_failed_is_not_found_again) {
  FaultyDevice* device = nullptr;
  auto loaded = load(fixture("llama_tied"), 1, kOptions, &device);
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const std::vector<int32_t> prompt = counted(96);
  const int seq = engine.open(prompt, "").value();
  device->fail_at(FaultyDevice::Fails::run, true);
  EXPECT_FALSE(engine.step({.seq = seq, .tokens = std::span(prompt).first(80)}).ok());
  engine.close(seq);
  const int again = engine.open(prompt, "").value();
  EXPECT_EQ(engine.tokens(again).size(), 0u);
}

TEST(EngineFailure, a_file_that_is_cut_or_written_to_changes_nothing) {
  for (const bool cut : {true, false}) {
    const MadeFile file("tiny-llama", "q4_0");
    auto loaded = load(file.path(), 1, kOptions);
    ASSERT_NE(loaded, nullptr);
    Engine& engine = *loaded->engine;
    const std::vector<int32_t> prompt = counted(20);
    const int seq = engine.open().value();
    ASSERT_TRUE(compute(engine, seq, std::span(prompt).first(10)).ok());
    if (cut) {
      std::filesystem::resize_file(file.path(), 4096);
    } else {
      std::filesystem::last_write_time(
          file.path(), std::filesystem::last_write_time(file.path()) + std::chrono::seconds(1));
    }
    const Status status = compute(engine, seq, std::span(prompt).subspan(10));
    EXPECT_EQ(status.code(), Code::io_error);
    EXPECT_NE(status.message().find(file.path()), std::string_view::npos);
    EXPECT_EQ(engine.tokens(seq).size(), 10u);
  }
}

TEST(EngineFailure, a_pool_that_is_empty_changes_nothing) {
  EngineOptions options = kOptions;
  auto sized = load(fixture("llama_tied"), 1, options);
  ASSERT_NE(sized, nullptr);
  options.kv_bytes = static_cast<int64_t>(sized->engine->kv_bytes()) / 4;  // 3 of 12 pages
  auto loaded = load(fixture("llama_tied"), 1, options);
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  EXPECT_EQ(engine.n_free_pages(), 3);
  const std::vector<int32_t> prompt = counted(96);
  const int a = engine.open().value(), b = engine.open().value();
  ASSERT_TRUE(compute(engine, a, std::span(prompt).first(60)).ok());
  const std::vector<Work> batch = {{.seq = a, .tokens = std::span(prompt).first(30)},
                                   {.seq = b, .tokens = std::span(prompt).first(66)}};
  EXPECT_EQ(engine.step(batch).code(), Code::unavailable);
  EXPECT_EQ(engine.n_free_pages(), 2);
  EXPECT_EQ(engine.tokens(a).size(), 60u);
  EXPECT_TRUE(engine.step(batch[0]).ok());
}

TEST(EngineFailure, a_batch_that_does_not_fit_costs_no_context) {
  EngineOptions options = kOptions;
  auto sized = load(fixture("llama_tied"), 1, options);
  ASSERT_NE(sized, nullptr);
  options.kv_bytes = static_cast<int64_t>(sized->engine->kv_bytes()) / 4;  // 3 of 12 pages
  auto loaded = load(fixture("llama_tied"), 1, options);
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const std::vector<int32_t> kept = counted(64), other(66, 7);
  const int a = engine.open(kept, "", false).value();
  ASSERT_TRUE(compute(engine, a, kept).ok());
  engine.remember(a);
  engine.close(a);
  ASSERT_EQ(engine.tree().count("", kept), 64);
  const int b = engine.open().value(), c = engine.open().value(), d = engine.open().value();
  const std::vector<Work> batch = {{.seq = b, .tokens = other},
                                   {.seq = c, .tokens = std::span(other).first(2)},
                                   {.seq = d, .tokens = std::span(other).first(2)}};
  EXPECT_EQ(engine.step(batch).code(), Code::unavailable) << "four pages, of three";
  EXPECT_EQ(engine.tree().count("", kept), 64) << "what was kept is still there";
  EXPECT_TRUE(engine.step(batch[0]).ok());
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
  EXPECT_FALSE(compute(engine, seq, std::vector<int32_t>{1, 2, 3, 4, 5}).ok());
  EXPECT_FALSE(compute(engine, seq, std::vector<int32_t>{1, 128}).ok());
  EXPECT_FALSE(compute(engine, seq, std::vector<int32_t>{-1}).ok());
  ASSERT_TRUE(compute(engine, seq, std::vector<int32_t>{1, 2, 3, 4}).ok());
  EXPECT_EQ(compute(engine, seq, std::vector<int32_t>{5}).code(), Code::unavailable);
}

}  // namespace
}  // namespace millrace
