// One request: why it ends, what it keeps and what it refuses.
#include "engine/request.h"

#include <gtest/gtest.h>

#include "engine/talk_test.h"

namespace millrace {
namespace {

TEST(Request, ends_for_the_reason_it_says) {
  Talk talk = Talk::with(1, {.n_ctx = 64, .max_seqs = 2});
  ASSERT_NE(talk.model, nullptr);
  const std::atomic<bool> never = false, at_once = true;
  const std::vector<int32_t> prompt = tokens_of(*talk.model, "Once upon a time");
  const int seq = talk.model->engine().open().value();
  const auto run = [&](const Generation& g, const std::atomic<bool>& cancel) {
    Said said;
    return talk.model->generate(seq, prompt, g, into(said), cancel).value();
  };
  Generation endless = how(1, -1);
  endless.ignore_end = true;
  const Generated full = run(endless, never);
  EXPECT_EQ(full.finish, Finish::length);
  EXPECT_EQ(full.n_prompt + full.n_tokens, 64);
  EXPECT_EQ(run(how(1, 3), never).n_tokens, 3);
  EXPECT_EQ(run(how(1, 3), at_once).finish, Finish::cancelled);
  Generation stopped = endless;
  stopped.stops = {" "};
  EXPECT_EQ(run(stopped, never).finish, Finish::stop_string);
}

TEST(Request, keeps_what_the_sequence_shares_with_the_prompt) {
  Talk talk = Talk::with(1, {.n_ctx = 64});
  ASSERT_NE(talk.model, nullptr);
  const std::atomic<bool> never = false;
  const int seq = talk.model->engine().open().value();
  Said said;
  const std::vector<int32_t> prompt = tokens_of(*talk.model, "Once upon a time there was");
  const auto first = talk.model->generate(seq, prompt, how(1, 4), into(said), never).value();
  EXPECT_EQ(first.n_cached, 0);
  std::vector<int32_t> longer = prompt;
  longer.insert(longer.end(), said.tokens.begin(), said.tokens.end());
  const auto second = talk.model->generate(seq, longer, how(1, 4), into(said), never).value();
  EXPECT_EQ(second.n_cached, std::ssize(longer) - 1);
}

TEST(Request, refuses_a_prompt_that_does_not_fit) {
  Talk talk = Talk::with(1, {.n_ctx = 8});
  ASSERT_NE(talk.model, nullptr);
  using Tokens = std::vector<int32_t>;
  EXPECT_FALSE(talk.model->check(Tokens{}, how(1, 1)).ok());
  EXPECT_FALSE(talk.model->check(Tokens(9, 5), how(1, 1)).ok());
  EXPECT_FALSE(talk.model->check(Tokens{-1}, how(1, 1)).ok());
  Generation bad = how(1, 1);
  bad.sampling.top_p = -1;
  EXPECT_FALSE(talk.model->check(Tokens{5}, bad).ok());
}

}  // namespace
}  // namespace millrace
