// What a context is worth, at times that the test says.
#include "engine/retention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace millrace {
namespace {

TEST(Gaps, buckets_are_half_octaves) {
  EXPECT_EQ(Gaps::bucket_of(0), 0);
  EXPECT_EQ(Gaps::bucket_of(0.124), 0);
  EXPECT_EQ(Gaps::bucket_of(0.125), 1);
  for (int i = 0; i < Gaps::kBuckets; ++i) {
    EXPECT_EQ(Gaps::bucket_of(Gaps::start_of(i)), i);
    EXPECT_EQ(Gaps::bucket_of(Gaps::start_of(i + 1) * 0.999), i);
  }
  EXPECT_EQ(Gaps::bucket_of(1e12), Gaps::kBuckets - 1);
}

// Ten of twenty come back in the third bucket, the others wait through all of them.
TEST(Gaps, hazards_are_shares_of_those_still_away) {
  Gaps gaps;
  for (int i = 0; i < 20; ++i) {
    gaps.passed(0);
    gaps.passed(1);
    if (i < 10) {
      gaps.returned(2);
      continue;
    }
    for (int bucket = 2; bucket < Gaps::kBuckets; ++bucket) gaps.passed(bucket);
  }
  const Gaps::Hazards hazards = gaps.hazards({}, 1e-9);
  EXPECT_NEAR(hazards[1], 0, 1e-6);
  EXPECT_NEAR(hazards[2], 0.5, 1e-6);
  EXPECT_NEAR(hazards[3], 0, 1e-6);
  EXPECT_NEAR(return_chance(hazards, 0, 1), 0.5, 1e-6);
  EXPECT_NEAR(return_chance(hazards, 1, 1e4), 0, 1e-6);
  // Half of them are back after about 0.2 s; who waits longer waits for nothing.
  EXPECT_NEAR(return_rate(hazards, 0), 0.5 / 0.23, 0.1);
  EXPECT_NEAR(return_rate(hazards, 1), 0, 1e-6);
}

// The longer a gap that is sure to end soon has lasted, the more its context is worth.
TEST(Gaps, waiting_for_what_is_due_is_worth_more_with_time) {
  const Gaps::Hazards due = assumed_hazards(1, 60, 0.2);
  EXPECT_GT(return_rate(due, 30), return_rate(due, 0));
  EXPECT_GT(return_rate(due, 55), return_rate(due, 30));
  const Gaps::Hazards heavy = assumed_hazards(0.5, 10, 2);
  EXPECT_LT(return_rate(heavy, 600), return_rate(heavy, 10));
  EXPECT_NEAR(return_chance(assumed_hazards(0.8, 10, 1), 0, 1e5), 0.8, 1e-3);
}

std::vector<int32_t> tokens(int64_t n, int32_t first) {
  std::vector<int32_t> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), first);
  return out;
}

class RetentionAt : public testing::Test {
 protected:
  double now_ = 1000;
  Retention retention_{KvPolicy::value, [this] { return now_; }};

  Use ask(const std::string& session, const std::vector<int32_t>& prompt, double ttl_s = 0,
          const std::string& tenant = "") {
    return retention_.arrived(
        {.tenant = tenant, .session = session, .prompt = prompt, .ttl_s = ttl_s});
  }
  double rate(const Use& use) const { return retention_.worth({&use, 1}, 0).rate; }
  // `n` clients call this tool and are back after `gap_s`.
  void learn(const std::string& tool, double gap_s, int n) {
    for (int i = 0; i < n; ++i) {
      std::vector<int32_t> prompt = tokens(128, i * 1000);
      retention_.ended(ask(tool + std::to_string(i), prompt), TurnEnd::end, tool);
      now_ += gap_s;
      prompt.push_back(1);
      ask(tool + std::to_string(i), prompt);
    }
  }
};

TEST_F(RetentionAt, a_prompt_goes_on_the_line_that_it_begins_with) {
  const Use first = ask("a", tokens(200, 0));
  retention_.ended(first, TurnEnd::end);
  const Use second = ask("a", tokens(300, 0));
  EXPECT_EQ(second.line, first.line);
  EXPECT_EQ(second.turn, first.turn + 1);
  EXPECT_NE(ask("b", tokens(300, 0)).line, first.line);          // another session
  EXPECT_NE(ask("a", tokens(300, 7)).line, first.line);          // another beginning
  EXPECT_NE(ask("a", tokens(300, 0), 0, "x").line, first.line);  // another tenant
  const Use unnamed = ask("", tokens(200, 0));
  EXPECT_EQ(ask("", tokens(260, 0)).line, unnamed.line);
  EXPECT_NE(ask("", tokens(30, 0)).line, ask("", tokens(30, 0)).line);  // too short to tell
  EXPECT_EQ(retention_.continued({.session = "a", .prompt = tokens(310, 0)}).line, first.line);
}

TEST_F(RetentionAt, gaps_are_learned_for_each_tool) {
  learn("quick", 0.5, 30);
  learn("slow", 100, 30);
  const Use quick = ask("q", tokens(128, 1)), slow = ask("s", tokens(128, 2));
  retention_.let_in(quick, 0);
  EXPECT_GT(rate(quick), 100);  // in use
  retention_.ended(quick, TurnEnd::end, "quick");
  retention_.ended(slow, TurnEnd::end, "slow");
  EXPECT_GT(rate(quick), 10 * rate(slow));
  now_ += 60;
  EXPECT_LT(rate(quick), rate(slow));  // it should have been back long ago
  EXPECT_EQ(retention_.counts().n_tools, 2);
  EXPECT_EQ(retention_.shown(slow).after, "slow");
}

// Of those that wait, who came first is let in first; who is away waits when it is back.
TEST_F(RetentionAt, what_is_next_in_line_is_worth_most) {
  for (int i = 0; i < 100; ++i) {
    const Use use = ask("w" + std::to_string(i), tokens(128, i));
    now_ += 60;
    retention_.let_in(use, 0);
    retention_.ended(use, TurnEnd::end, "quick");
  }
  const Use first = ask("a", tokens(128, 1));
  now_ += 30;
  const Use second = ask("b", tokens(128, 2)), runs = ask("c", tokens(128, 3));
  retention_.let_in(runs, 0);
  const Use away = ask("d", tokens(128, 4));
  retention_.ended(away, TurnEnd::end, "quick");
  now_ += 1;
  EXPECT_GT(rate(runs), rate(first));
  EXPECT_GT(rate(first), 1.5 * rate(second));
  EXPECT_GT(rate(second), rate(away));
  EXPECT_EQ(retention_.shown(first).state, "waiting");
}

// What a client that waits will use is what it used last; once it is let in, what it uses no more
// is left behind.
TEST_F(RetentionAt, who_waits_has_left_nothing_behind_yet) {
  const Use before = ask("a", tokens(128, 1));
  retention_.let_in(before, 0);
  retention_.ended(before, TurnEnd::end);
  now_ += 10;
  const double away = rate(before);
  const Use next = ask("a", tokens(200, 1));
  EXPECT_GT(rate(before), away);
  EXPECT_EQ(retention_.shown(before).state, "waiting");
  retention_.let_in(next, 128);
  EXPECT_LT(rate(before), 0.1 * rate(next));
}

TEST_F(RetentionAt, a_tool_call_means_a_return) {
  const Use calls = ask("a", tokens(128, 1)), ends = ask("b", tokens(128, 2));
  retention_.ended(calls, TurnEnd::end, "never_seen");
  retention_.ended(ends, TurnEnd::end);
  EXPECT_GT(rate(calls), 3 * rate(ends));
}

TEST_F(RetentionAt, there_is_an_end_to_names_of_tools) {
  for (int i = 0; i < 300; ++i) {
    const Use use = ask(std::to_string(i), tokens(128, i));
    retention_.ended(use, TurnEnd::end, "tool" + std::to_string(i));
    EXPECT_EQ(retention_.shown(use).after, i < 256 ? "tool" + std::to_string(i) : "other");
  }
  EXPECT_EQ(retention_.counts().n_tools, 256);
}

TEST_F(RetentionAt, a_newer_state_devalues_the_older_branch) {
  const Use first = ask("a", tokens(200, 0));
  retention_.ended(first, TurnEnd::end);
  now_ += 10;
  const Use second = ask("a", tokens(300, 0));
  retention_.ended(second, TurnEnd::end);
  EXPECT_LT(rate(first), 0.1 * rate(second));
  EXPECT_EQ(retention_.shown(first).state, "left behind");
  const Use compacted = ask("a", tokens(100, 5000));
  retention_.ended(compacted, TurnEnd::end);
  EXPECT_LT(rate(second), 0.5 * rate(compacted));
  EXPECT_EQ(retention_.shown(second).state, "superseded");
}

// A session whose older lines go on has several: nothing of it is devalued for long.
TEST_F(RetentionAt, a_session_of_several_lines_is_learned) {
  Use main, side;
  for (int i = 0; i < 20; ++i) {
    main = ask("a", tokens(200 + i, 0));
    retention_.ended(main, TurnEnd::end);
    side = ask("a", tokens(200 + i, 5000));
    retention_.ended(side, TurnEnd::end);
  }
  EXPECT_EQ(main.turn, 20u);
  EXPECT_GT(rate(main), 0.8 * rate(side));
}

TEST_F(RetentionAt, a_hint_counts_until_it_expires) {
  const Use said = ask("a", tokens(128, 0), 3600), silent = ask("b", tokens(128, 0));
  retention_.ended(said, TurnEnd::end);
  retention_.ended(silent, TurnEnd::end);
  now_ += 3000;
  EXPECT_GT(rate(said), rate(silent));
  now_ += 1000;
  EXPECT_DOUBLE_EQ(rate(said), rate(silent));
}

// Of another tenant's blocks none goes because of a hint, however long it is.
TEST_F(RetentionAt, a_hint_takes_nothing_from_another_tenant) {
  const Use mine = ask("a", tokens(128, 0), 3600, "me");
  retention_.ended(mine, TurnEnd::end);
  now_ += 500;
  const Use mine_too = ask("b", tokens(128, 0), 0, "me"),
            yours = ask("c", tokens(128, 0), 0, "you");
  retention_.ended(mine_too, TurnEnd::end);
  retention_.ended(yours, TurnEnd::end);
  now_ += 100;
  const auto candidate = [&](const Use& use, double cost) {
    return Retention::Candidate{retention_.worth({&use, 1}, 0), cost, 0};
  };
  // Without hints `mine` is worth least: its owner gives way, and has what is worth less to him.
  EXPECT_EQ(Retention::least(
                std::vector{candidate(mine, 1), candidate(mine_too, 0.01), candidate(yours, 1)}),
            1u);
  // Alone in its share, it goes itself, though with its hint it is worth more than the other's.
  const auto hinted = retention_.worth({&mine, 1}, 0), other = retention_.worth({&yours, 1}, 0);
  EXPECT_GT(hinted.rate, hinted.learned);
  EXPECT_EQ(Retention::least(std::vector{candidate(yours, 1), candidate(mine, 1)}), 1u);
  EXPECT_LT(hinted.learned, other.learned);
}

TEST_F(RetentionAt, equals_go_by_age_and_what_nobody_knows_fades) {
  const auto unknown = [&](double age_s) {
    return Retention::Candidate{retention_.worth({}, age_s), 1, age_s};
  };
  EXPECT_EQ(Retention::least(std::vector{unknown(1000), unknown(100000), unknown(5000)}), 1u);
  const auto same = [](double age_s) { return Retention::Candidate{{1, 1, 0}, 1, age_s}; };
  EXPECT_EQ(Retention::least(std::vector{same(1), same(3), same(2)}), 1u);
  EXPECT_EQ(Retention::least({}), 0u);
}

// What came back counts, and what did not: of those who never do, nothing is expected later.
TEST_F(RetentionAt, who_stays_away_is_learned_too) {
  const Use before = ask("x", tokens(128, 1));
  retention_.ended(before, TurnEnd::end);
  const double assumed = rate(before);
  for (int i = 0; i < 100; ++i) {
    retention_.ended(ask("n" + std::to_string(i), tokens(128, i)), TurnEnd::end);
    now_ += 100;
  }
  const Use after = ask("y", tokens(128, 1));
  retention_.ended(after, TurnEnd::end);
  EXPECT_LT(rate(after), 0.2 * assumed);
}

TEST_F(RetentionAt, lines_are_bounded) {
  Use last;
  for (int i = 0; i < 40000; ++i) {
    last = ask("", tokens(64, i));
    retention_.ended(last, TurnEnd::end);
    now_ += 0.001;
  }
  EXPECT_LE(retention_.counts().n_lines, 16384);
  EXPECT_EQ(ask("", tokens(70, 39999)).line, last.line);
}

// Who begins conversations without end makes its own forgotten, not another tenant's.
TEST_F(RetentionAt, many_lines_of_one_tenant_take_none_of_another) {
  const Use yours = ask("s", tokens(128, 0), 0, "you");
  retention_.ended(yours, TurnEnd::end, "a_tool");
  for (int i = 0; i < 40000; ++i) {
    now_ += 0.001;
    retention_.ended(ask(std::to_string(i), tokens(64, i), 0, "me"), TurnEnd::end, "a_tool");
  }
  EXPECT_LE(retention_.counts().n_lines, 16384);
  EXPECT_EQ(retention_.shown(yours).state, "idle");
  EXPECT_EQ(ask("s", tokens(128, 0), 0, "you").line, yours.line);
}

// A hint is a time from a second to a week, whatever was said.
TEST_F(RetentionAt, hints_that_are_no_times_say_nothing) {
  const Use silent = ask("silent", tokens(128, 0));
  retention_.ended(silent, TurnEnd::end);
  for (const double ttl_s : {-1.0, 0.0, 1e-300, std::nan(""), -HUGE_VAL}) {
    const Use said = ask(std::to_string(ttl_s), tokens(128, 0), ttl_s);
    retention_.ended(said, TurnEnd::end);
    EXPECT_EQ(rate(said), rate(silent)) << ttl_s;
    EXPECT_EQ(retention_.shown(said).hint_s, 0) << ttl_s;
  }
  const Use forever = ask("forever", tokens(128, 0), HUGE_VAL);
  retention_.ended(forever, TurnEnd::end);
  EXPECT_EQ(retention_.shown(forever).hint_s, 7 * 86400);
}

// Names of sessions and tools are bytes of any kind and length; what is kept of them is bounded.
TEST_F(RetentionAt, names_are_any_bytes) {
  const std::string odd("\0\xff\n{}%s", 8), vast(1 << 20, 'x');
  const Use first = ask(odd, tokens(128, 0)), second = ask(vast, tokens(128, 0));
  EXPECT_NE(first.line, second.line);
  retention_.ended(first, TurnEnd::end, odd);
  retention_.ended(second, TurnEnd::end, vast);
  EXPECT_EQ(retention_.shown(first).after, odd);
  EXPECT_EQ(retention_.shown(second).after, vast.substr(0, 128));
  // Cut where one could be taken for the other, they would be one line.
  EXPECT_NE(ask("a", tokens(128, 0), 0, "bc").line, ask("ca", tokens(128, 0), 0, "b").line);
}

// What ended twice, or never began, changes nothing.
TEST_F(RetentionAt, events_of_no_line_are_ignored) {
  const Use use = ask("a", tokens(128, 0));
  retention_.ended(use, TurnEnd::gone);
  retention_.ended(use, TurnEnd::end, "tool");
  retention_.ended({77, 1}, TurnEnd::end, "tool");
  retention_.let_in({77, 1}, 5);
  retention_.ended({}, TurnEnd::end);
  EXPECT_EQ(retention_.shown(use).after, "gone");
  EXPECT_EQ(retention_.counts().n_tools, 0);
  EXPECT_EQ(retention_.shown({77, 1}).state, "unknown");
  const Use few[] = {{77, 1}, use, {}};
  EXPECT_GT(retention_.worth(few, 0).rate, 0);
}

TEST(Uses, keeps_the_last_few) {
  Uses uses;
  for (uint32_t i = 1; i <= 6; ++i) uses.add({i, i});
  uses.add({5, 9});
  uses.add({});
  ASSERT_EQ(uses.all().size(), 4u);
  EXPECT_EQ(uses.all()[0].line, 5u);
  EXPECT_EQ(uses.all()[0].turn, 9u);
  EXPECT_EQ(uses.all()[1].line, 6u);
  EXPECT_EQ(uses.all()[3].line, 3u);
}

}  // namespace
}  // namespace millrace
