// Requests that go on from tokens of an earlier run, and those in the background.
#include <gtest/gtest.h>

#include "engine/scheduler.h"
#include "engine/talk_test.h"

namespace millrace {
namespace {

struct Outcome {
  std::vector<int32_t> drawn;
  Generated result;
  Status why;
  bool has_ended = false;
};

Ask ask(Talk& talk, const Generation& generation, Outcome& outcome) {
  Ask out{.prompt = tokens_of(*talk.model, "Once upon a time"), .how = generation};
  out.on_token = [&outcome](const TokenEvent& event) {
    if (event.token != nullptr) outcome.drawn.push_back(event.token->token);
  };
  out.on_end = [&outcome](const Generated& result, const Status& why) {
    outcome.result = result;
    outcome.why = why;
    outcome.has_ended = true;
  };
  return out;
}

Generation story(int64_t n) {
  Generation out = how(4, n);
  out.ignore_end = true;
  return out;
}

void run(Scheduler& scheduler) {
  for (int i = 0; i < 100000 && !scheduler.is_idle(); ++i) scheduler.step();
}

TEST(Resume, goes_on_bit_for_bit_from_any_token) {
  Talk talk = Talk::with(1, {.n_ctx = 512});
  ASSERT_NE(talk.model, nullptr);
  Scheduler scheduler(*talk.model, {});
  Outcome whole;
  ASSERT_TRUE(scheduler.submit(ask(talk, story(200), whole)).ok());
  run(scheduler);
  ASSERT_EQ(whole.drawn.size(), 200u);
  for (const size_t n : {1, 7, 63, 64, 199}) {
    Talk other = Talk::with(1, {.n_ctx = 512});  // which remembers nothing
    Scheduler fresh(*other.model, {});
    Outcome rest;
    Ask again = ask(other, story(200), rest);
    again.drawn.assign(whole.drawn.begin(), whole.drawn.begin() + static_cast<int64_t>(n));
    again.is_background = true;
    ASSERT_TRUE(fresh.submit(std::move(again)).ok());
    run(fresh);
    ASSERT_TRUE(rest.has_ended && rest.why.ok());
    EXPECT_EQ(rest.result.n_tokens, 200);
    EXPECT_EQ(rest.result.finish, Finish::length);
    std::vector<int32_t> all(whole.drawn.begin(), whole.drawn.begin() + static_cast<int64_t>(n));
    all.insert(all.end(), rest.drawn.begin(), rest.drawn.end());
    EXPECT_EQ(all, whole.drawn) << n;
  }
}

TEST(Resume, what_had_ended_ends_again_without_a_token) {
  Talk talk = Talk::with(1, {.n_ctx = 512});
  ASSERT_NE(talk.model, nullptr);
  Scheduler scheduler(*talk.model, {});
  Outcome outcome;
  Ask again = ask(talk, story(3), outcome);
  again.drawn = {20, 21, 22};
  ASSERT_TRUE(scheduler.submit(std::move(again)).ok());
  run(scheduler);
  EXPECT_TRUE(outcome.has_ended && outcome.drawn.empty());
  EXPECT_EQ(outcome.result.finish, Finish::length);
  Outcome none;
  Ask longer = ask(talk, story(3), none);
  longer.drawn = {20, 21, 22, 23};
  EXPECT_FALSE(scheduler.submit(std::move(longer)).ok());
  Ask foreign = ask(talk, story(3), none);
  foreign.drawn = {1 << 30};
  EXPECT_FALSE(scheduler.submit(std::move(foreign)).ok());
}

TEST(Background, rests_while_another_is_in_its_prompt) {
  Talk talk = Talk::with(1, {.n_ctx = 2048});
  ASSERT_NE(talk.model, nullptr);
  Scheduler scheduler(*talk.model, {.chunk_tokens = 16});
  Outcome behind, urgent;
  Ask slow = ask(talk, story(400), behind);
  slow.is_background = true;
  slow.priority = 1 << 30;
  ASSERT_TRUE(scheduler.submit(std::move(slow)).ok());
  while (behind.drawn.size() < 5) scheduler.step();
  Ask now = ask(talk, story(20), urgent);
  now.prompt.assign(1500, 30);
  ASSERT_TRUE(scheduler.submit(std::move(now)).ok());
  const size_t n_before = behind.drawn.size();
  while (urgent.drawn.empty()) scheduler.step();
  EXPECT_EQ(behind.drawn.size(), n_before);
  run(scheduler);
  EXPECT_EQ(behind.drawn.size(), 400u);
}

}  // namespace
}  // namespace millrace
