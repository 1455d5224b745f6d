// Many requests over one engine: what each says depends on itself alone, however they arrive, share
// what is remembered, wait, are moved aside and go away.
#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/philox.h"
#include "engine/talk_test.h"

namespace millrace {
namespace {

struct Outcome {
  Said said;
  Generated result;
  Status why;
  bool ended = false;
};

Ask ask(std::vector<int32_t> prompt, const Generation& generation, Outcome& outcome) {
  Ask out{.prompt = std::move(prompt), .how = generation};
  out.on_token = into(outcome.said);
  out.on_end = [&outcome](const Generated& result, const Status& why) {
    EXPECT_FALSE(outcome.ended);
    outcome.result = result;
    outcome.why = why;
    outcome.ended = true;
  };
  return out;
}

void run(Scheduler& scheduler) {
  for (int i = 0; i < 100000 && !scheduler.is_idle(); ++i) scheduler.step();
  EXPECT_TRUE(scheduler.is_idle());
}

Said alone(Talk& talk, const std::vector<int32_t>& prompt, const Generation& generation) {
  Said said;
  const std::atomic<bool> never = false;
  const int seq = talk.model->engine().open().value();
  const auto result = talk.model->generate(seq, prompt, generation, into(said), never);
  EXPECT_TRUE(result.ok()) << result.status().message();
  talk.model->engine().close(seq);
  return said;
}

std::vector<int32_t> random_prompt(Rng& rng, int64_t n) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<int32_t>(10 + rng.below(1000)));
  return out;
}

Generation endless(uint64_t seed, int64_t n) {
  Generation out = how(seed, n);
  out.ignore_end = true;
  return out;
}

// Conversations that share a beginning and each other's turns.
std::vector<std::vector<int32_t>> related_prompts(Rng& rng, size_t n) {
  std::vector<std::vector<int32_t>> out = {random_prompt(rng, 150)};
  while (out.size() < n) {
    const auto& parent = out[rng.below(out.size())];
    std::vector<int32_t> one(parent.begin(),
                             parent.begin() + static_cast<int64_t>(rng.below(parent.size() + 1)));
    const auto more = random_prompt(rng, 1 + static_cast<int64_t>(rng.below(120)));
    one.insert(one.end(), more.begin(), more.end());
    out.push_back(one);
  }
  return out;
}

// Little memory, few sequences, priorities, cancels: the bits are those of each request alone.
TEST(SchedulerThreads, each_request_depends_on_itself_alone) {
  Talk one = Talk::with(1, {.n_ctx = 512});
  ASSERT_NE(one.model, nullptr);
  const int64_t page_bytes =
      kPageTokens * kv_bytes_per_token(one.model->engine().config(), DType::f16);
  for (const int64_t n_pages : {12, 40}) {
    Talk many = Talk::with(
        2, {.n_ctx = 512, .max_seqs = 5, .max_rows = 48, .kv_bytes = n_pages * page_bytes});
    ASSERT_NE(many.model, nullptr);
    Scheduler scheduler(*many.model, {.chunk_tokens = 20});
    Rng rng(static_cast<uint64_t>(n_pages));
    const auto prompts = related_prompts(rng, 24);
    std::vector<Outcome> outcomes(prompts.size());
    std::vector<Generation> hows;
    std::vector<Scheduler::Id> ids;
    for (size_t i = 0; i < prompts.size(); ++i) {
      hows.push_back(endless(i, 5 + static_cast<int64_t>(rng.below(60))));
      Ask one_ask = ask(prompts[i], hows[i], outcomes[i]);
      one_ask.priority = static_cast<int>(rng.below(3));
      one_ask.session = fmt::format("{}", rng.below(4));
      ids.push_back(scheduler.submit(std::move(one_ask)).value());
      for (uint64_t n = rng.below(6); n > 0; --n) scheduler.step();
      if (rng.below(8) == 0) scheduler.cancel(ids[rng.below(ids.size())]);
    }
    run(scheduler);
    if (n_pages == 12) {
      EXPECT_GT(scheduler.counts().n_moved_aside, 0);
    }
    EXPECT_GT(scheduler.counts().n_cached, 0);
    int n_whole = 0;
    for (size_t i = 0; i < prompts.size(); ++i) {
      ASSERT_TRUE(outcomes[i].ended) << i;
      ASSERT_TRUE(outcomes[i].why.ok()) << outcomes[i].why.message();
      Said expected = alone(one, prompts[i], hows[i]);
      if (outcomes[i].result.finish == Finish::cancelled)
        expected.tokens.resize(outcomes[i].said.tokens.size());
      else
        ++n_whole;
      EXPECT_EQ(outcomes[i].said.tokens, expected.tokens) << i;
    }
    EXPECT_GT(n_whole, 12);
    // Nothing is held once all have ended: the tree gives up every page.
    EXPECT_EQ(many.model->engine().n_free_pages() + many.model->engine().tree().n_reclaimable(0),
              many.model->engine().n_pages());
  }
}

TEST(Scheduler, a_second_turn_computes_what_is_new) {
  Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 2});
  ASSERT_NE(talk.model, nullptr);
  Scheduler scheduler(*talk.model, {});
  Rng rng(1);
  Outcome first, second, salted;
  std::vector<int32_t> prompt = random_prompt(rng, 200);
  ASSERT_TRUE(scheduler.submit(ask(prompt, endless(1, 30), first)).ok());
  run(scheduler);
  EXPECT_EQ(first.result.n_cached, 0);
  prompt.insert(prompt.end(), first.said.tokens.begin(), first.said.tokens.end());
  const auto more = random_prompt(rng, 10);
  prompt.insert(prompt.end(), more.begin(), more.end());
  ASSERT_TRUE(scheduler.submit(ask(prompt, endless(1, 5), second)).ok());
  Ask other = ask(prompt, endless(1, 5), salted);
  other.salt = "another tenant";
  ASSERT_TRUE(scheduler.submit(std::move(other)).ok());
  run(scheduler);
  EXPECT_EQ(second.result.n_cached, 229);  // all but the last drawn, which was never computed
  EXPECT_EQ(salted.result.n_cached, 0);
  EXPECT_EQ(second.said, salted.said);
}

// Where the answer is rendered otherwise next time, the prompt's end is where to go on from; a
// window's pages at both places are kept.
TEST(Scheduler, windows_recompute_no_history_either) {
  const MadeFile file("tiny-gemma3", "q8_0");
  Rng rng(2);
  const std::vector<int32_t> prompt = [&] {
    std::vector<int32_t> out;
    for (int i = 0; i < 500; ++i) out.push_back(static_cast<int32_t>(rng.below(128)));
    return out;
  }();
  auto loaded = load(file.path(), 1, {.n_ctx = 1024, .max_seqs = 4, .max_rows = 64});
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const auto turn = [&](std::span<const int32_t> tokens, int64_t prompt_end) {
    const int seq = engine.open(tokens, "").value();
    const int64_t n_kept = std::ssize(engine.tokens(seq));
    if (prompt_end > n_kept) {
      EXPECT_TRUE(compute(engine, seq,
                          tokens.subspan(static_cast<size_t>(n_kept),
                                         static_cast<size_t>(prompt_end - n_kept)))
                      .ok());
      engine.remember(seq);
    }
    EXPECT_TRUE(compute(engine, seq, tokens.subspan(engine.tokens(seq).size())).ok());
    const auto logits = engine.logits(0).value();
    const std::vector<float> out(logits.begin(), logits.end());
    engine.remember(seq);
    engine.close(seq);
    return std::pair(n_kept, out);
  };
  EXPECT_EQ(turn(std::span(prompt).first(300), 200).first, 0);
  const auto went_on = turn(prompt, 0);
  EXPECT_EQ(went_on.first, 300);
  std::vector<int32_t> rendered_otherwise = prompt;
  rendered_otherwise[205] ^= 1;
  EXPECT_GE(turn(rendered_otherwise, 0).first, 200);
  auto fresh = load(file.path(), 1, {.n_ctx = 1024, .max_rows = 64});
  const int seq = fresh->engine->open().value();
  ASSERT_TRUE(compute(*fresh->engine, seq, prompt).ok());
  const auto logits = fresh->engine->logits(0).value();
  EXPECT_EQ(went_on.second, std::vector<float>(logits.begin(), logits.end()));
}

TEST(Scheduler, a_prefix_in_flight_is_computed_once) {
  Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 4, .max_rows = 32});
  ASSERT_NE(talk.model, nullptr);
  Scheduler scheduler(*talk.model, {});
  Rng rng(1);
  const auto shared = random_prompt(rng, 256);
  std::vector<Outcome> outcomes(4);
  for (Outcome& outcome : outcomes) {
    auto prompt = shared;
    const auto own = random_prompt(rng, 7);
    prompt.insert(prompt.end(), own.begin(), own.end());
    ASSERT_TRUE(scheduler.submit(ask(prompt, endless(1, 3), outcome)).ok());
  }
  run(scheduler);
  EXPECT_EQ(scheduler.counts().n_computed, 256 + 4 * 7);
}

TEST(Scheduler, choices_differ_and_share_their_prompt) {
  Talk talk = Talk::with(1, {.n_ctx = 256, .max_seqs = 3});
  ASSERT_NE(talk.model, nullptr);
  Scheduler scheduler(*talk.model, {});
  Rng rng(1);
  const auto prompt = random_prompt(rng, 100);
  std::vector<Outcome> outcomes(3);
  for (uint32_t choice = 0; choice < 3; ++choice) {
    Ask one = ask(prompt, endless(7, 20), outcomes[choice]);
    one.choice = choice;
    ASSERT_TRUE(scheduler.submit(std::move(one)).ok());
  }
  run(scheduler);
  EXPECT_EQ(outcomes[0].said, alone(talk, prompt, endless(7, 20)));
  EXPECT_NE(outcomes[0].said.tokens, outcomes[1].said.tokens);
  EXPECT_NE(outcomes[1].said.tokens, outcomes[2].said.tokens);
  EXPECT_LT(scheduler.counts().n_computed, 100 + 2 * 40);
}

// While another decodes, a long prompt takes no more than its chunk of a step.
TEST(Scheduler, a_long_prompt_freezes_nobody) {
  Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 2, .max_rows = 128});
  ASSERT_NE(talk.model, nullptr);
  Scheduler scheduler(*talk.model, {.chunk_tokens = 16});
  Rng rng(1);
  Outcome quick, slow;
  ASSERT_TRUE(scheduler.submit(ask(random_prompt(rng, 20), endless(1, 60), quick)).ok());
  scheduler.step();
  ASSERT_TRUE(scheduler.submit(ask(random_prompt(rng, 400), endless(1, 2), slow)).ok());
  while (!slow.ended && !quick.ended) {
    const size_t n_before = quick.said.tokens.size();
    const int64_t n_rows = scheduler.counts().n_rows;
    scheduler.step();
    EXPECT_EQ(quick.said.tokens.size(), n_before + 1);
    EXPECT_LE(scheduler.counts().n_rows - n_rows, 17);
  }
  run(scheduler);
}

// One prompt after the other, the shorter first; the older one gets on all the same.
TEST(Scheduler, prompts_take_turns_by_what_is_left_of_them) {
  Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 3, .max_rows = 128});
  ASSERT_NE(talk.model, nullptr);
  Scheduler scheduler(*talk.model, {.chunk_tokens = 32});
  Rng rng(2);
  Outcome decoding, lengthy, brief;
  ASSERT_TRUE(scheduler.submit(ask(random_prompt(rng, 20), endless(1, 90), decoding)).ok());
  scheduler.step();
  ASSERT_TRUE(scheduler.submit(ask(random_prompt(rng, 400), endless(1, 2), lengthy)).ok());
  ASSERT_TRUE(scheduler.submit(ask(random_prompt(rng, 60), endless(1, 2), brief)).ok());
  while (!brief.ended) scheduler.step();
  EXPECT_FALSE(lengthy.ended);
  const auto shown = scheduler.shown();
  const auto left = std::find_if(shown.begin(), shown.end(), [](const Scheduler::Shown& one) {
    return one.phase == Scheduler::Phase::prefill;
  });
  ASSERT_NE(left, shown.end());
  EXPECT_GT(left->n_done, 8) << "the older one waited for all of the younger";
  run(scheduler);
  EXPECT_TRUE(lengthy.ended);
}

TEST(Scheduler, who_was_served_least_comes_first) {
  Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 1});
  ASSERT_NE(talk.model, nullptr);
  Scheduler scheduler(*talk.model, {});
  Rng rng(1);
  std::vector<std::string> order;
  std::vector<Outcome> outcomes(4);
  const auto add = [&](size_t i, const std::string& session, int priority) {
    Ask one = ask(random_prompt(rng, 30), endless(1, 3), outcomes[i]);
    one.session = session;
    one.priority = priority;
    one.on_end = [&order, session](const Generated&, const Status&) { order.push_back(session); };
    ASSERT_TRUE(scheduler.submit(std::move(one)).ok());
  };
  add(0, "greedy", 0);
  run(scheduler);
  add(1, "greedy", 0);
  add(2, "modest", 0);
  add(3, "urgent", -1);
  run(scheduler);
  EXPECT_EQ(order, (std::vector<std::string>{"greedy", "urgent", "modest", "greedy"}));
}

TEST(Scheduler, refuses_what_can_never_fit_and_ends_at_what_fits) {
  Talk probe = Talk::with(1, {.n_ctx = 64});
  ASSERT_NE(probe.model, nullptr);
  const int64_t page_bytes =
      kPageTokens * kv_bytes_per_token(probe.model->engine().config(), DType::f16);
  Talk talk = Talk::with(1, {.n_ctx = 1024, .max_seqs = 2, .kv_bytes = 3 * page_bytes});
  Scheduler scheduler(*talk.model, {});
  Rng rng(1);
  Outcome outcome;
  EXPECT_EQ(scheduler.submit(ask(random_prompt(rng, 200), endless(1, 3), outcome)).status().code(),
            Code::invalid_argument);
  ASSERT_TRUE(scheduler.submit(ask(random_prompt(rng, 150), endless(1, -1), outcome)).ok());
  run(scheduler);
  EXPECT_EQ(outcome.result.finish, Finish::length);
  EXPECT_EQ(outcome.result.n_prompt + outcome.result.n_tokens, 192);
}

// Two that grow past the memory together take turns, and each gets to its end.
TEST(Scheduler, two_that_do_not_fit_together_both_end) {
  Talk probe = Talk::with(1, {.n_ctx = 64});
  ASSERT_NE(probe.model, nullptr);
  const int64_t page_bytes =
      kPageTokens * kv_bytes_per_token(probe.model->engine().config(), DType::f16);
  Talk talk = Talk::with(1, {.n_ctx = 1024, .max_seqs = 4, .kv_bytes = 12 * page_bytes});
  Scheduler scheduler(*talk.model, {});
  Rng rng(1);
  std::vector<Outcome> outcomes(2);
  for (Outcome& outcome : outcomes)
    ASSERT_TRUE(scheduler.submit(ask(random_prompt(rng, 20), endless(1, 600), outcome)).ok());
  run(scheduler);
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.result.n_tokens, 600);
  EXPECT_LT(scheduler.counts().n_moved_aside, 20);
}

// What was computed before is found again though every page is in use.
TEST(Scheduler, the_same_again_fits_where_it_fit_once) {
  Talk probe = Talk::with(1, {.n_ctx = 64});
  ASSERT_NE(probe.model, nullptr);
  const int64_t page_bytes =
      kPageTokens * kv_bytes_per_token(probe.model->engine().config(), DType::f16);
  Talk talk = Talk::with(1, {.n_ctx = 1024, .max_seqs = 4, .kv_bytes = 12 * page_bytes});
  Scheduler scheduler(*talk.model, {});
  Rng rng(1);
  const auto prompt = random_prompt(rng, 767);
  for (int i = 0; i < 3; ++i) {
    Outcome outcome;
    ASSERT_TRUE(scheduler.submit(ask(prompt, endless(1, 1), outcome)).ok());
    run(scheduler);
    EXPECT_TRUE(outcome.why.ok()) << outcome.why.message();
    EXPECT_EQ(outcome.result.n_tokens, 1);
  }
  std::vector<Outcome> outcomes(2);
  const auto shared = random_prompt(rng, 364);
  for (Outcome& outcome : outcomes)
    ASSERT_TRUE(scheduler.submit(ask(shared, endless(1, 300), outcome)).ok());
  run(scheduler);
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.result.n_tokens, 300);
}

// Who is first in line does not wait for a prefix that the last in line computes.
TEST(Scheduler, nobody_waits_for_who_comes_after) {
  Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 4, .max_rows = 32});
  ASSERT_NE(talk.model, nullptr);
  Scheduler scheduler(*talk.model, {.chunk_tokens = 16});
  Rng rng(1);
  const auto shared = random_prompt(rng, 300);
  Outcome late, urgent;
  Ask last = ask(shared, endless(1, 1), late);
  last.priority = 1000;
  ASSERT_TRUE(scheduler.submit(std::move(last)).ok());
  scheduler.step();
  Ask first = ask(shared, endless(1, 1), urgent);
  first.priority = -5;
  ASSERT_TRUE(scheduler.submit(std::move(first)).ok());
  while (!urgent.ended) {
    EXPECT_FALSE(late.ended);
    scheduler.step();
  }
  run(scheduler);
}

TEST(Scheduler, a_step_that_fails_ends_those_in_it_and_no_others) {
  bool fails = false;
  EngineOptions options{.n_ctx = 128, .max_seqs = 2};
  options.fault = [&](std::string_view phase) {
    return fails && phase == "run" ? error(Code::device_lost, "broken") : Status();
  };
  Talk talk = Talk::with(1, options);
  ASSERT_NE(talk.model, nullptr);
  Scheduler scheduler(*talk.model, {});
  Rng rng(1);
  Outcome lost, whole;
  ASSERT_TRUE(scheduler.submit(ask(random_prompt(rng, 20), endless(1, 9), lost)).ok());
  scheduler.step();
  fails = true;
  scheduler.step();
  fails = false;
  EXPECT_TRUE(lost.ended);
  EXPECT_EQ(lost.why.code(), Code::device_lost);
  EXPECT_EQ(lost.result.finish, Finish::failed);
  ASSERT_TRUE(scheduler.submit(ask(random_prompt(rng, 20), endless(1, 9), whole)).ok());
  run(scheduler);
  EXPECT_EQ(whole.result.n_tokens, 9);
}

}  // namespace
}  // namespace millrace
