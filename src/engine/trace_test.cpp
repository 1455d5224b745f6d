// What a traced step records, and that recording changes nothing.
#include <gtest/gtest.h>

#include <cstring>

#include "base/clock.h"
#include "engine/fixture_test.h"
#include "machine/count_allocations_test.h"

namespace millrace {
namespace {

constexpr int kLanes = 2;
const std::vector<int32_t> kTokens = {5, 42, 79, 116, 25};

class TraceThreads : public testing::Test {
 protected:
  void SetUp() override {
    loaded_ = load(fixture("llama_tied"), kLanes, {.n_ctx = 64, .max_rows = 16});
    ASSERT_NE(loaded_, nullptr);
  }
  Engine& engine() { return *loaded_->engine; }
  Program& program(int64_t n_rows) {
    return *engine().network().program().bound_for(n_rows, 1).value();
  }
  std::vector<float> logits_of_step() {
    const int seq = engine().open().value();
    EXPECT_TRUE(engine().step({.seq = seq, .tokens = kTokens}).ok());
    const auto logits = engine().logits(0).value();
    engine().close(seq);
    return {logits.begin(), logits.end()};
  }
  std::unique_ptr<Loaded> loaded_;
};

TEST_F(TraceThreads, EveryLaneRecordsEveryCallAndItsWaitInOrder) {
  const auto want = logits_of_step();
  Program& traced = program(std::ssize(kTokens));
  Trace trace(kLanes, 2 * traced.n_calls());
  traced.trace_to(&trace);
  const int64_t begin_ns = now_ns();
  const auto got = logits_of_step();
  const int64_t end_ns = now_ns();
  traced.trace_to(nullptr);
  EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0);
  EXPECT_EQ(trace.n_lost(), 0u);
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto spans = trace.lane(lane);
    EXPECT_EQ(spans.size(), traced.n_calls() + traced.n_barriers());
    int64_t last_ns = begin_ns;
    uint32_t next_call = 0;
    for (const TraceSpan& span : spans) {
      EXPECT_GE(span.begin_ns, last_ns);
      EXPECT_GE(span.end_ns, span.begin_ns);
      last_ns = span.end_ns;
      if (span.what == TraceSpan::What::call)
        EXPECT_EQ(span.call, next_call++);
      else
        EXPECT_EQ(span.call + 1, next_call) << "a wait follows its call";
    }
    EXPECT_EQ(next_call, traced.n_calls());
    EXPECT_LE(last_ns, end_ns);
  }
  logits_of_step();
  EXPECT_EQ(trace.lane(0).size(), traced.n_calls() + traced.n_barriers()) << "switched off";
}

TEST_F(TraceThreads, AFullTraceCountsWhatItLost) {
  Program& traced = program(std::ssize(kTokens));
  Trace trace(kLanes, 3);
  traced.trace_to(&trace);
  logits_of_step();
  traced.trace_to(nullptr);
  EXPECT_EQ(trace.lane(0).size(), 3u);
  EXPECT_EQ(trace.n_lost(), kLanes * (traced.n_calls() + traced.n_barriers() - 3));
}

TEST_F(TraceThreads, ATracedRunAllocatesNothing) {
  Program& traced = program(std::ssize(kTokens));
  logits_of_step();
  Trace trace(kLanes, 2 * traced.n_calls());
  traced.trace_to(&trace);
  const int64_t before = n_allocations();
  EXPECT_TRUE(traced.run(*loaded_->team).ok());
  EXPECT_EQ(n_allocations(), before);
  traced.trace_to(nullptr);
}

// What --ops does: a step's calls one by one, after it, leave the same logits.
TEST_F(TraceThreads, TheCallsOfAStepCanRunAgainOneByOne) {
  const int seq = engine().open().value();
  ASSERT_TRUE(engine().step({.seq = seq, .tokens = kTokens}).ok());
  const auto logits = engine().logits(0).value();
  const std::vector<float> want(logits.begin(), logits.end());
  Program& calls = program(std::ssize(kTokens));
  for (size_t i = 0; i < calls.n_calls(); ++i)
    ASSERT_TRUE(calls.time_ns(*loaded_->team, i, i + 1, 1).ok());
  EXPECT_EQ(std::memcmp(engine().logits(0).value().data(), want.data(), want.size() * 4), 0);
}

}  // namespace
}  // namespace millrace
