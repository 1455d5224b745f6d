#include "lab/notebook/exchange.h"

#include <nlohmann/json.hpp>
#include <random>

#include "lab/notebook/fixture_test.h"
#include "lab/run_record.h"

namespace millrace::lab {
namespace {

class ExchangeTest : public NotebookFixture {
 protected:
  // One of everything.
  void fill(Notebook& notebook) {
    const int64_t base = add_run(notebook, {metric("avx2", 10)});
    Hypothesis first = hypothesis("-10%");
    first.prediction.variant_a = first.prediction.variant_b = "";
    first.prediction.baseline_run = base;
    const int64_t h = notebook.add(first).value();
    const int64_t run = add_run(notebook, {metric("avx2", 8)}, h);
    ASSERT_TRUE(notebook.give_verdict(h).ok());
    ASSERT_TRUE(notebook.learn(h, "it is").ok());
    const int64_t second = notebook.add(hypothesis("same")).value();
    Edge edge;
    edge.from = {"hyp", second};
    edge.to = {"hyp", h};
    edge.type = "refines";
    ASSERT_TRUE(notebook.add(edge).ok());
    Post post;
    post.slug = "p";
    post.title = "A post";
    post.body = "text";
    Claim claim;
    claim.post = notebook.add(post).value();
    claim.run = run;
    claim.text = "8 us";
    claim.subject = metric("avx2", 8).subject;
    ASSERT_TRUE(notebook.add(claim).ok());
    add_run(notebook, {metric("avx2", 9)}, second, "candidate", "interrupted");
  }
  Notebook open_other() {
    auto other = Notebook::open(folder / "other.db");
    EXPECT_TRUE(other.ok());
    return *std::move(other);
  }
  static void replace(std::string& text, const std::string& a, const std::string& b) {
    const size_t at = text.find(a);
    ASSERT_NE(at, std::string::npos) << a;
    text.replace(at, a.size(), b);
  }
};

TEST_F(ExchangeTest, WhatWasExportedComesBackMarked) {
  Notebook notebook = open();
  fill(notebook);
  Exported counts;
  const std::string text = exported(notebook, &counts);
  EXPECT_TRUE(counts.left_out.empty()) << counts.left_out.front();
  Notebook other = open_other();
  auto imported = import_text(other, text);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(imported->n_runs, 3);
  const RunSummary run = other.store().run(1).value();
  EXPECT_NE(run.origin.find("imported"), std::string::npos);
  EXPECT_EQ(run.uid, notebook.store().run(1)->uid);
  EXPECT_EQ(other.store().problem_of(1).value(), "");
  EXPECT_EQ(other.store().metrics(1)->front().samples,
            notebook.store().metrics(1)->front().samples);
  EXPECT_EQ(other.verdicts_of(1)->front().outcome, "supported");
  EXPECT_TRUE(other.state_of(other.learning(1).value(), machine)->imported);
  EXPECT_TRUE(other.state_of(other.claim(1).value(), machine)->imported);
  EXPECT_EQ(other.state_of(other.claim(1).value(), machine)->status, "ok");
  EXPECT_EQ(other.edges(0, 100)->size(), notebook.edges(0, 100)->size());
  // Once more changes nothing, here or there.
  auto again = import_text(other, text);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->n_runs + again->n_others, 0);
  EXPECT_EQ(import_text(notebook, exported(other))->n_runs, 0);
  EXPECT_TRUE(notebook.store().run(1)->origin.empty());
}

TEST_F(ExchangeTest, WhatWasChangedIsRefusedAsAWhole) {
  Notebook notebook = open();
  fill(notebook);
  const std::string whole = exported(notebook);
  const struct {
    const char *from, *to, *says;
  } kChanges[] = {
      {"\"variant\":\"avx2\"", "\"variant\":\"avx3\"", "digest"},
      {"\"machine\":\"", "\"machine\":\"fast ", "digest"},
      {"\"commit\":\"abc\"", "\"commit\":\"abd\"", "digest"},
      {"\"samples\":[9.99", "\"samples\":[9.98", "digest"},
      {"\"state\":\"done\"", "\"state\":\"running\"", "state"},
      {"\"outcome\":\"supported\"", "\"outcome\":\"refuted\"", "samples say supported"},
      {"\"statistic\":\"median\",\"value\":7.9", "\"statistic\":\"median\",\"value\":6.9",
       "claim says 6.9"},
      {"\"version\":1", "\"version\":2", "version 2"},
      {"\"direction\":\"down\"", "\"direction\":\"up\"", "does not go with"},
      {"\"type\":\"post\"", "\"type\":\"boast\"", "boast"},
      {"\"type\":\"hypothesis\",\"uid\":\"", "\"type\":\"hypothesis\",\"uid\":\"0x", "uid"},
  };
  for (const auto& [from, to, says] : kChanges) {
    std::string text = whole;
    replace(text, from, to);
    Notebook other = open_other();
    const auto imported = import_text(other, text);
    ASSERT_FALSE(imported.ok()) << from;
    EXPECT_NE(imported.status().message().find(says), std::string::npos)
        << imported.status().message();
    EXPECT_NE(imported.status().message().find("x.jsonl:"), std::string::npos);
    EXPECT_TRUE(other.store().runs(10)->empty()) << from;
    EXPECT_TRUE(other.hypotheses(0, 10)->empty()) << from;
    EXPECT_TRUE(other.events(0, 10)->empty()) << from;
  }
}

TEST_F(ExchangeTest, ARunWhoseDigestWasMadeToFitIsStillTheOtherRun) {
  Notebook notebook = open();
  add_run(notebook, {metric("avx2", 10)});
  RunRecord forged = notebook.store().record(1).value();
  forged.metrics[0].samples[0] = 1;
  nlohmann::ordered_json line = document_of(forged);
  line["digest"] = digest_of(forged);
  const std::string text = "{\"type\":\"millrace-lab\",\"version\":1}\n" + line.dump() +
                           "\n{\"type\":\"end\",\"lines\":2}\n";
  const auto imported = import_text(notebook, text);
  EXPECT_NE(imported.status().message().find("another digest"), std::string::npos);
  EXPECT_EQ(notebook.store().problem_of(1).value(), "");
}

// A file from outside can neither bring a run into an experiment of ours nor judge with a run that
// was made for something else.
TEST_F(ExchangeTest, RunsFromElsewhereDoNotJoinWhatWasMadeHere) {
  Notebook notebook = open();
  const int64_t h = notebook.add(hypothesis("-10%")).value();
  add_run(notebook, {metric("avx2", 10), metric("avx512", 12)}, h);
  RunRecord forged = notebook.store().record(1).value();
  forged.head.uid = std::string(32, 'a');
  forged.metrics[1] = metric("avx512", 5);
  nlohmann::ordered_json line = document_of(forged);
  line["digest"] = digest_of(forged);
  line["experiment"] = notebook.uid_of({"exp", 1}).value();
  const std::string head = "{\"type\":\"millrace-lab\",\"version\":1}\n";
  EXPECT_NE(import_text(notebook, head + line.dump() + "\n{\"type\":\"end\",\"lines\":2}\n")
                .status()
                .message()
                .find("was made here"),
            std::string::npos);
  line.erase("experiment");
  const std::string verdict = fmt::format(
      R"({{"type":"verdict","uid":"{}","created":"","outcome":"supported","method":"{}",)"
      R"("json":"","hypothesis":"{}","run":"{}"}})",
      std::string(32, 'b'), kJudgeMethod, notebook.uid_of({"hyp", h}).value(), forged.head.uid);
  EXPECT_NE(import_text(notebook,
                        head + line.dump() + "\n" + verdict + "\n{\"type\":\"end\",\"lines\":3}\n")
                .status()
                .message()
                .find("was not measured"),
            std::string::npos);
  EXPECT_EQ(notebook.store().runs(10)->size(), 1u);
  EXPECT_EQ(notebook.give_verdict(h)->verdict.outcome, "refuted");
}

TEST_F(ExchangeTest, ALearningSaysThatItsBaselineCameFromElsewhere) {
  Notebook other = open_other();
  add_run(other, {metric("avx2", 10)});
  Notebook notebook = open();
  ASSERT_TRUE(import_text(notebook, exported(other)).ok());
  Hypothesis h = hypothesis("-10%");
  h.prediction.variant_a = h.prediction.variant_b = "";
  h.prediction.baseline_run = 1;
  const int64_t id = notebook.add(h).value();
  add_run(notebook, {metric("avx2", 8)}, id);
  ASSERT_TRUE(notebook.give_verdict(id).ok());
  const int64_t learned = notebook.learn(id, "it is").value();
  const LearningState state =
      notebook.state_of(notebook.learning(learned).value(), machine).value();
  EXPECT_TRUE(state.imported);
  EXPECT_EQ(state.strength.n_imported, 1);
}

TEST_F(ExchangeTest, LongLinesAndDeepNestingAreRefused) {
  Notebook notebook = open();
  const std::string deep = "{\"type\":\"millrace-lab\",\"x\":" + std::string(1 << 20, '[');
  EXPECT_NE(import_text(notebook, deep).status().message().find("not a JSON"), std::string::npos);
  const std::string nested =
      "{\"type\":\"millrace-lab\",\"x\":" + std::string(20, '[') + std::string(20, ']') + "}\n";
  EXPECT_NE(import_text(notebook, nested).status().message().find("not a JSON"), std::string::npos);
  EXPECT_NE(import_text(notebook, std::string(33 << 20, 'x')).status().message().find("32 MiB"),
            std::string::npos);
}

TEST_F(ExchangeTest, AFileThatWasCutOffIsRefused) {
  Notebook notebook = open();
  fill(notebook);
  const std::string whole = exported(notebook);
  Notebook other = open_other();
  for (size_t n = 0; n < whole.size() - 1; n += 1 + whole.size() / 97)
    EXPECT_FALSE(import_text(other, whole.substr(0, n)).ok()) << n;
  EXPECT_FALSE(import_text(other, whole + "{}\n").ok());
  EXPECT_TRUE(other.store().runs(10)->empty());
}

// Bytes that are anything: an error, or the very same records.
TEST_F(ExchangeTest, DamagedBytesNeverBecomeMeasurements) {
  Notebook notebook = open();
  fill(notebook);
  const std::string whole = exported(notebook);
  std::mt19937 random(7);
  Notebook other = open_other();
  for (int i = 0; i < 400; ++i) {
    std::string text = whole;
    for (int n = 1 + static_cast<int>(random() % 3); n > 0; --n)
      text[random() % text.size()] = static_cast<char>(random());
    const auto imported = import_text(other, text);
    if (!imported.ok()) continue;
    const auto runs = other.store().runs(10).value();
    for (const RunSummary& run : runs) {
      const std::string problem = other.store().problem_of(run.id).value();
      EXPECT_TRUE(problem.empty() || run.state == "interrupted") << problem;
    }
    std::filesystem::remove_all(folder / "other.db");
    other = open_other();
  }
}

TEST_F(ExchangeTest, ARunThatRunsIsLeftOutAndOneThatWasKilledIsNoEvidence) {
  Notebook notebook = open();
  add_run(notebook, {metric("avx2", 10)}, 0, "", "");
  Exported counts;
  exported(notebook, &counts);
  ASSERT_EQ(counts.left_out.size(), 1u);
  EXPECT_NE(counts.left_out[0].find("has not ended"), std::string::npos);
  ASSERT_EQ(sql("UPDATE runs SET process = ''"), "");
  const std::string text = exported(notebook, &counts);
  EXPECT_TRUE(counts.left_out.empty());
  Notebook other = open_other();
  ASSERT_TRUE(import_text(other, text).ok());
  EXPECT_EQ(other.store().run(1)->state, "interrupted");
  EXPECT_NE(other.store().problem_of(1).value(), "");
}

}  // namespace
}  // namespace millrace::lab
