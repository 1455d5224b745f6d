#include "lab/notebook/notebook.h"

#include <sys/wait.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "lab/notebook/fixture_test.h"
#include "lab/notebook/graph.h"

namespace millrace::lab {
namespace {

class NotebookTest : public NotebookFixture {
 protected:
  // Of avx512 against avx2 with such times.
  std::string outcome(const std::string& effect, double a, double b) {
    Notebook notebook = open();
    const int64_t h = notebook.add(hypothesis(effect)).value();
    add_run(notebook, {metric("avx2", a), metric("avx512", b)}, h);
    auto judged = notebook.give_verdict(h);
    return judged.ok() ? judged->verdict.outcome : std::string(judged.status().message());
  }
};

TEST_F(NotebookTest, PredictionsAreReadStrictly) {
  Prediction p;
  for (const char* text : {"-10%", "+5%", "-0.5%", "down", "up", "same"})
    EXPECT_TRUE(parse_effect(text, p).ok()) << text;
  for (const char* text : {"", "-", "10%", "-10", "--10%", "-100%", "-nan%", "+inf%", "-1e9%", "+%",
                           "-0%", "sideways", "-10%;", "\x1b[2J"})
    EXPECT_EQ(parse_effect(text, p).code(), Code::invalid_argument) << text;
  ASSERT_TRUE(parse_effect("-12.5%", p).ok());
  EXPECT_EQ(p.direction, "down");
  EXPECT_DOUBLE_EQ(p.size, -0.125);
}

TEST_F(NotebookTest, VerdictsFollowFromTheSamples) {
  EXPECT_EQ(outcome("-10%", 10, 8), "supported");
  EXPECT_EQ(outcome("-10%", 10, 9.5), "refuted");  // faster, and not by as much
  EXPECT_EQ(outcome("-10%", 10, 11), "refuted");
  EXPECT_EQ(outcome("-10%", 10, 9.01), "undecided");  // as much, within what counts
  EXPECT_EQ(outcome("down", 10, 9.8), "supported");
  EXPECT_EQ(outcome("down", 10, 10), "refuted");
  EXPECT_EQ(outcome("+10%", 10, 12), "supported");
  EXPECT_EQ(outcome("+10%", 10, 10.2), "refuted");
  EXPECT_EQ(outcome("up", 10, 9), "refuted");
  EXPECT_EQ(outcome("same", 10, 10.005), "supported");
  EXPECT_EQ(outcome("same", 10, 12), "refuted");
}

// A prediction is about every row that it matches.
TEST_F(NotebookTest, OneRowThatRefutesIsEnough) {
  Notebook notebook = open();
  const int64_t h = notebook.add(hypothesis("-10%")).value();
  add_run(notebook,
          {metric("avx2", 10), metric("avx512", 8), metric("avx2", 10, "2x9"),
           metric("avx512", 10, "2x9")},
          h);
  auto judged = notebook.give_verdict(h);
  ASSERT_TRUE(judged.ok()) << judged.status().message();
  EXPECT_EQ(judged->judgement.rows.size(), 2u);
  EXPECT_EQ(judged->verdict.outcome, "refuted");
  Hypothesis narrow = hypothesis("-10%");
  narrow.prediction.problem = "1x*";
  const int64_t n = notebook.add(narrow).value();
  add_run(notebook, {metric("avx2", 10), metric("avx512", 8), metric("avx2", 10, "2x9")}, n);
  EXPECT_EQ(notebook.give_verdict(n)->verdict.outcome, "supported");
}

TEST_F(NotebookTest, TooFewOrImpossibleSamplesDecideNothing) {
  Notebook notebook = open();
  const int64_t h = notebook.add(hypothesis("-10%")).value();
  Metric a = metric("avx2", 10), b = metric("avx512", 5);
  a.samples.resize(3);
  b.samples.resize(3);
  add_run(notebook, {a, b}, h);
  EXPECT_EQ(notebook.give_verdict(h)->verdict.outcome, "undecided");
  a = metric("avx2", 10);
  b = metric("avx512", 5);
  b.samples[3] = 0;
  add_run(notebook, {a, b}, h);
  EXPECT_EQ(notebook.give_verdict(h)->verdict.outcome, "undecided");
  b = metric("avx512", 5);
  b.noise = INFINITY;  // no twin: 5 % are taken for it
  add_run(notebook, {a, b}, h);
  EXPECT_EQ(notebook.give_verdict(h)->verdict.outcome, "supported");
}

TEST_F(NotebookTest, RunsAreComparedWithABaseline) {
  Notebook notebook = open();
  Hypothesis asked = hypothesis("-10%");
  asked.prediction.variant_a = asked.prediction.variant_b = "";
  const int64_t h = notebook.add(asked).value();
  EXPECT_NE(notebook.give_verdict(h).status().message().find("no run yet"), std::string::npos);
  const int64_t run = add_run(notebook, {metric("avx2", 8)}, h);
  EXPECT_NE(notebook.give_verdict(h).status().message().find("--baseline"), std::string::npos);
  const int64_t base = add_run(notebook, {metric("avx2", 10)}, h, "baseline");
  auto judged = notebook.give_verdict(h);
  ASSERT_TRUE(judged.ok()) << judged.status().message();
  EXPECT_EQ(judged->verdict.run, run);
  EXPECT_EQ(judged->verdict.baseline_run, base);
  EXPECT_EQ(judged->verdict.outcome, "supported");
  // The same again is the same verdict; another run gives another.
  EXPECT_EQ(notebook.give_verdict(h)->verdict.id, judged->verdict.id);
  add_run(notebook, {metric("avx2", 10)}, h);
  EXPECT_EQ(notebook.give_verdict(h)->verdict.outcome, "refuted");
  EXPECT_EQ(notebook.verdicts_of(h)->size(), 2u);
  ASSERT_TRUE(notebook.learn(h, "it depends").ok());
  EXPECT_EQ(notebook.state_of(notebook.learning(1).value(), machine)->strength.name,
            "contradicted");
}

// Who repeats a run until it suits, and asks about that one alone, has all of them judged.
TEST_F(NotebookTest, NoRunOfAHypothesisIsLeftOut) {
  Notebook notebook = open();
  const int64_t h = notebook.add(hypothesis("-10%")).value();
  add_run(notebook, {metric("avx2", 10), metric("avx512", 10)}, h);
  add_run(notebook, {metric("avx2", 10)}, h);  // nothing to judge in it
  const int64_t suits = add_run(notebook, {metric("avx2", 10), metric("avx512", 8)}, h);
  add_run(notebook, {metric("avx2", 10), metric("avx512", 11)}, h);
  EXPECT_EQ(notebook.give_verdict(h, suits)->verdict.outcome, "supported");
  ASSERT_EQ(notebook.verdicts_of(h)->size(), 3u);
  EXPECT_EQ(notebook.verdicts_of(h)->back().run, suits);
  ASSERT_TRUE(notebook.learn(h, "It suits.").ok());
  const Strength strength = notebook.state_of(notebook.learning(1).value(), machine)->strength;
  EXPECT_EQ(strength.n_supporting, 1);
  EXPECT_EQ(strength.n_refuting, 2);
  EXPECT_EQ(strength.name, "contradicted");
}

// The last word is not the newest run's: on one case it is refuted, on another supported.
TEST_F(NotebookTest, ARefutedHypothesisStaysSoAfterARunThatSupportsIt) {
  Notebook notebook = open();
  const int64_t h = notebook.add(hypothesis("-10%")).value();
  const auto status = [&] { return notebook.hypotheses(0, 1)->front().status; };
  for (int i = 0; i < 2; ++i)
    add_run(notebook, {metric("avx2", 10, "1x576"), metric("avx512", 10, "1x576")}, h);
  ASSERT_TRUE(notebook.give_verdict(h).ok());
  EXPECT_EQ(status(), "refuted");
  add_run(notebook, {metric("avx2", 10, "8x576"), metric("avx512", 8, "8x576")}, h);
  EXPECT_EQ(notebook.give_verdict(h)->verdict.outcome, "supported");
  EXPECT_EQ(status(), "contradicted");
  EXPECT_EQ(notebook.hypotheses(0, 9, "contradicted")->size(), 1u);
  EXPECT_EQ(notebook.hypotheses(0, 9, "supported")->size(), 0u);
  EXPECT_EQ(notebook.count_hypotheses()->at("contradicted"), 1);
  EXPECT_EQ(to_text(notebook.strength_of(h).value()),
            "contradicted (1 run supports it, 2 refute it)");
  // What is learned from it is of the case that was measured, and of no other.
  const Learning learned = notebook.learning(notebook.learn(h, "always").value()).value();
  EXPECT_NE(learned.scope.find("; case 8x576"), std::string::npos) << learned.scope;
}

// A run is held against every baseline that was measured, not the one that suits.
TEST_F(NotebookTest, ANewBaselineDoesNotReplaceAVerdict) {
  Notebook notebook = open();
  Hypothesis asked = hypothesis("-10%");
  asked.prediction.variant_a = asked.prediction.variant_b = "";
  const int64_t h = notebook.add(asked).value();
  add_run(notebook, {metric("avx2", 10)}, h, "baseline");
  add_run(notebook, {metric("avx2", 10)}, h);
  EXPECT_EQ(notebook.give_verdict(h)->verdict.outcome, "refuted");
  add_run(notebook, {metric("avx2", 20)}, h, "baseline");
  EXPECT_EQ(notebook.give_verdict(h)->verdict.outcome, "supported");
  EXPECT_EQ(notebook.hypotheses(0, 1)->front().status, "contradicted");
  EXPECT_EQ(notebook.strength_of(h)->name, "contradicted");
  // Also where both were measured before anybody asked.
  const int64_t second = notebook.add(asked).value();
  for (const double us : {10., 20.}) add_run(notebook, {metric("avx2", us)}, second, "baseline");
  add_run(notebook, {metric("avx2", 10)}, second);
  ASSERT_TRUE(notebook.give_verdict(second).ok());
  EXPECT_EQ(notebook.strength_of(second)->name, "contradicted");
}

// A run that is stopped because its first rows do not suit is no evidence, and is not forgotten.
TEST_F(NotebookTest, InterruptedRunsAreCounted) {
  Notebook notebook = open();
  const int64_t h = notebook.add(hypothesis("-10%")).value();
  const std::vector<Metric> bad = {metric("avx2", 10), metric("avx512", 10)};
  for (int i = 0; i < 2; ++i) add_run(notebook, bad, h, "candidate", "interrupted");
  add_run(notebook, {metric("avx2", 10), metric("avx512", 8)}, h);
  ASSERT_TRUE(notebook.give_verdict(h).ok());
  const int64_t l = notebook.learn(h, "it is").value();
  const Strength strength = notebook.state_of(notebook.learning(l).value(), machine)->strength;
  EXPECT_EQ(strength.n_unfinished, 2);
  EXPECT_EQ(to_text(strength), "one run (1 run supports it, 0 refute it, 2 interrupted or failed)");
}

TEST_F(NotebookTest, OnlyAWholeRunOfTheHypothesisIsEvidence) {
  Notebook notebook = open();
  const std::vector<Metric> metrics = {metric("avx2", 10), metric("avx512", 8)};
  const int64_t before = add_run(notebook, metrics);
  const int64_t h = notebook.add(hypothesis("-10%")).value();
  EXPECT_EQ(notebook.give_verdict(h, before).status().code(), Code::not_found);
  const int64_t failed = add_run(notebook, metrics, h, "candidate", "failed");
  EXPECT_EQ(notebook.give_verdict(h, failed).status().code(), Code::unavailable);
  EXPECT_EQ(notebook.give_verdict(h).status().code(), Code::unavailable);
  add_run(notebook, metrics, h, "candidate", "");  // still running
  EXPECT_EQ(notebook.give_verdict(h).status().code(), Code::unavailable);
  EXPECT_EQ(notebook.learn(h, "nothing yet").status().code(), Code::not_found);
}

// A process that is killed leaves what it had measured, and nobody takes it for more.
TEST_F(NotebookTest, AKilledRunIsInterrupted) {
  int64_t h = 0;
  {
    Notebook notebook = open();
    h = notebook.add(hypothesis("-10%")).value();
  }
  const pid_t child = fork();
  if (child == 0) {
    Notebook notebook = open();
    add_run(notebook, {metric("avx2", 10), metric("avx512", 8)}, h, "candidate", "");
    if (notebook.store().run(1)->state != "running") _exit(1);
    raise(SIGKILL);
  }
  int state = 0;
  waitpid(child, &state, 0);
  ASSERT_TRUE(WIFSIGNALED(state)) << state;
  Notebook notebook = open();
  EXPECT_EQ(notebook.store().run(1)->state, "interrupted");
  EXPECT_EQ(notebook.store().metrics(1)->size(), 2u);
  EXPECT_NE(notebook.store().problem_of(1)->find("interrupted"), std::string::npos);
  EXPECT_EQ(notebook.give_verdict(h).status().code(), Code::unavailable);
}

TEST_F(NotebookTest, DeletedOrChangedEvidenceIsNamed) {
  Notebook notebook = open();
  const int64_t h = notebook.add(hypothesis("-10%")).value();
  const int64_t run = add_run(notebook, {metric("avx2", 10), metric("avx512", 8)}, h);
  ASSERT_TRUE(notebook.give_verdict(h).ok());
  const int64_t l = notebook.learn(h, "it is").value();
  EXPECT_EQ(notebook.state_of(notebook.learning(l).value(), machine)->evidence, "");
  ASSERT_EQ(
      sql("DROP TRIGGER samples_stay; UPDATE samples SET value = value / 2 WHERE metric_id = 2"),
      "");
  EXPECT_NE(notebook.store().problem_of(run)->find("changed"), std::string::npos);
  EXPECT_EQ(notebook.give_verdict(h).status().code(), Code::unavailable);
  ASSERT_EQ(sql("DROP TRIGGER runs_remain; DELETE FROM runs"), "");
  const auto state = notebook.state_of(notebook.learning(l).value(), machine);
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_NE(state.value().evidence.find("deleted"), std::string::npos);
  // What is left is shown and exported all the same.
  EXPECT_TRUE(read_graph(notebook, {"hyp", h}, 10, machine).ok());
  Exported counts;
  exported(notebook, &counts);
  EXPECT_FALSE(counts.left_out.empty());
}

TEST_F(NotebookTest, LearningsGoStale) {
  Notebook notebook = open();
  const int64_t h = notebook.add(hypothesis("-10%")).value();
  add_run(notebook, {metric("avx2", 10), metric("avx512", 8)}, h);
  ASSERT_TRUE(notebook.give_verdict(h).ok());
  const Learning l = notebook.learning(notebook.learn(h, "it is").value()).value();
  EXPECT_EQ(l.conditions.source, build_info().sources.at("rmsnorm"));
  EXPECT_EQ(notebook.state_of(l, machine)->stale, "");
  Machine other = machine;
  other.cpu_name = "another CPU";
  EXPECT_NE(notebook.state_of(l, other)->stale.find("hardware"), std::string::npos);
  Learning old = l;
  old.conditions.source = "0123456789abcdef";
  EXPECT_EQ(notebook.state_of(old, machine)->stale, "the source changed");
  old.conditions = l.conditions;
  old.conditions.toolkit = "g++ 4";
  EXPECT_NE(notebook.state_of(old, machine)->stale.find("toolkit was g++ 4"), std::string::npos);
  EXPECT_EQ(why_stale({"m", "12080", "t", "s"}, {"m", "13000", "t", "s"}),
            "driver was 12080, is 13000");
}

TEST_F(NotebookTest, ClaimsAreComputedNotTyped) {
  Notebook notebook = open();
  const int64_t run = add_run(notebook, {metric("avx2", 10)});
  Post post;
  post.slug = "norms";
  post.title = "Norms";
  post.body = "They take {claim:1}.";
  const int64_t p = notebook.add(post).value();
  Claim claim;
  claim.post = p;
  claim.run = run;
  claim.text = "ten microseconds";
  claim.subject = metric("avx2", 10).subject;
  claim.value = 3;  // has no say
  const int64_t id = notebook.add(claim).value();
  const Claim stored = notebook.claim(id).value();
  EXPECT_NEAR(stored.value, 10, 0.01);
  EXPECT_EQ(stored.unit, "us");
  EXPECT_EQ(notebook.state_of(stored, machine)->status, "ok");
  EXPECT_EQ(notebook.claims_of(p)->size(), 1u);
  claim.subject.variant = "avx3";
  EXPECT_EQ(notebook.add(claim).status().code(), Code::not_found);
  EXPECT_TRUE(notebook.set_post_state(p, "retracted").ok());
  EXPECT_FALSE(notebook.set_post_state(p, "golden").ok());
  ASSERT_EQ(sql("DROP TRIGGER samples_stay; UPDATE samples SET value = 1"), "");
  EXPECT_EQ(notebook.state_of(stored, machine)->status, "no evidence");
}

TEST_F(NotebookTest, EverySubjectKindHasAPlace) {
  Notebook notebook = open();
  const std::vector<Metric> metrics = {
      metric_of({"model", "tiny", "decode 128 at 0", "q8_0", "cpu", 2}, "tokens_per_s", "tok/s",
                "higher", {90, 91, 92, 93, 94, 95, 96}),
      metric_of({"serve", "tiny", "8 streams", "", "", 2}, "tokens_per_s", "tok/s", "higher",
                {300}),
      metric_of({"replay", "agent.jsonl", "turn 2", "", "", 1}, "time", "ms", "lower", {25})};
  const int64_t run = add_run(notebook, metrics);
  const auto stored = notebook.store().metrics(run).value();
  ASSERT_EQ(stored.size(), 3u);
  EXPECT_EQ(stored[0].value.mid, 93);
  EXPECT_EQ(stored[1].subject, metrics[1].subject);
  EXPECT_TRUE(notebook.store().rows(run)->empty());
  EXPECT_EQ(notebook.store().runs({.name = "tiny"})->size(), 1u);
  EXPECT_EQ(notebook.store().problem_of(run).value(), "");
}

// It is data: to SQL, to a terminal and to Graphviz.
TEST_F(NotebookTest, HostileTextIsOnlyText) {
  Notebook notebook = open();
  const std::string texts[] = {"'); DROP TABLE runs; --",    "\x1b[2J\x1b]0;title\x07 gone",
                               "<script>alert(1)</script>",  "a\"] ; evil [label=\"b\\",
                               "right \xe2\x80\xae to left", "one\ntwo\r\nthree\t\0four"};
  for (const std::string& text : texts) {
    Hypothesis h = hypothesis("-10%");
    h.text = h.rationale = h.prediction.problem = text;
    const auto id = notebook.add(h);
    ASSERT_TRUE(id.ok()) << id.status().message();
    EXPECT_EQ(notebook.hypothesis(id.value())->text, text);
  }
  for (const std::string& bad :
       {std::string(), std::string(" \n"), std::string("\xff\xfe"), std::string(70000, 'x')}) {
    Hypothesis h = hypothesis("-10%");
    h.text = bad;
    EXPECT_EQ(notebook.add(h).status().code(), Code::invalid_argument);
  }
  const Graph graph = read_graph(notebook, {}, 100, machine).value();
  ASSERT_EQ(graph.nodes.size(), std::size(texts));
  const std::string dot = to_dot(graph);
  EXPECT_EQ(dot.find('\x1b'), std::string::npos);
  EXPECT_NE(dot.find("a\\\"] ; evil [label=\\\"b\\\\"), std::string::npos) << dot;
  EXPECT_EQ(dot.find("\xe2\x80\xae"), std::string::npos);
}

TEST_F(NotebookTest, EverythingIsAnEvent) {
  Notebook notebook = open();
  const int64_t h = notebook.add(hypothesis("-10%")).value();
  add_run(notebook, {metric("avx2", 10), metric("avx512", 8)}, h);
  ASSERT_TRUE(notebook.give_verdict(h).ok());
  ASSERT_TRUE(notebook.learn(h, "it is").ok());
  std::vector<std::string> types;
  const auto events = notebook.events(0, 100).value();
  for (const Event& e : events) types.push_back(e.type);
  EXPECT_EQ(types, (std::vector<std::string>{"hypothesis.added", "experiment.began", "run.began",
                                             "run.ended", "verdict.given", "learning.added"}));
  EXPECT_EQ(notebook.events(events[3].seq, 100)->size(), 2u);
  EXPECT_EQ(notebook.newest_events(2)->front().type, "verdict.given");
  // Edges carry the run they rest on.
  const auto edges = notebook.edges(0, 100).value();
  for (const Edge& e : edges) EXPECT_EQ(e.run, 1) << e.type;
  EXPECT_EQ(notebook.edges_at({"hyp", h})->size(), 3u);
}

}  // namespace
}  // namespace millrace::lab
