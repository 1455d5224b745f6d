// A hundred thousand runs, and every question that a page or a command asks of them in less than a
// tenth of a second of this thread's own time: what others take of the machine is not counted.
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>

#include "lab/notebook/fixture_test.h"
#include "lab/notebook/graph.h"
#include "lab/page/documents.h"

namespace millrace::lab {
namespace {

class NotebookFullScale : public NotebookFixture {
 protected:
  static constexpr int kRuns = 100000;
  static constexpr double kMostMs = 100;

  // Runs as they are: two kilobytes about machine and build, four metrics with eleven rounds and a
  // twin. In SQL, for the hundred thousand; a hypothesis with an experiment for every tenth.
  void fill() {
    ASSERT_EQ(sql(fmt::format(R"sql(
PRAGMA synchronous = OFF;
BEGIN;
CREATE TEMP TABLE n(i INTEGER PRIMARY KEY);
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {0}) INSERT INTO n SELECT i FROM c;
INSERT INTO hypotheses(id, created, text, rationale, metric, direction, size, kind, name, problem, mode,
    variant_a, variant_b)
  SELECT i, '2026-01-01T00:00:00Z', 'hypothesis ' || i, '', 'time', 'down', -0.1, '', 'op' || (i % 20), '', '',
    'avx2', 'avx512' FROM n WHERE i <= {0} / 10;
INSERT INTO experiments(id, created, hypothesis_id, role, command)
  SELECT id, created, id, 'candidate', 'bench' FROM hypotheses;
INSERT INTO runs(id, kind, started, ended, state, device, machine, build_commit, command, experiment_id)
  SELECT i, 'op', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', 'done', 'cpu', 'm', 'abc', 'bench',
    CASE WHEN i % 10 = 0 THEN i / 10 END FROM n;
INSERT INTO run_details SELECT i, printf('%1200s', ''), printf('%800s', '') FROM n;
INSERT INTO run_names SELECT 'op' || CASE WHEN i = 7 THEN 'rare' ELSE i % 20 END, i FROM n;
INSERT INTO subjects(id, kind, name, problem, variant, mode, n_lanes)
  SELECT i, 'op', 'op' || ((i - 1) / 200), 'case' || i, 'avx2', 'cold', 2 FROM n WHERE i <= 4000;
INSERT INTO metrics(id, run_id, subject_id, name, unit, better, value, lo, hi, noise)
  SELECT 4 * i + k, i, 1 + 200 * (i % 20) + (4 * (i / 20) + k) % 200, 'time', 'us', 'lower', 10, 9, 11, 0.01
  FROM n, (SELECT 0 k UNION SELECT 1 UNION SELECT 2 UNION SELECT 3);
INSERT INTO kernel_facts SELECT id, 'key', 'n', 'l', 'avx2', 1, 1, 1, 1, 1, 1, 1, 'bytes', 1, 1, 1, 1, 1, 'plain' FROM metrics;
INSERT INTO samples SELECT m.id, 0, n.i, 10 + n.i FROM metrics m, n WHERE n.i <= 11;
UPDATE runs SET digest = 'x';
INSERT INTO verdicts(id, created, hypothesis_id, run_id, outcome, method, json)
  SELECT id, created, id, 10 * id, 'supported', 'sign-test-1', '{{}}' FROM hypotheses;
INSERT INTO edges(created, src_kind, src_id, dst_kind, dst_id, type, run_id)
  SELECT created, 'exp', id, 'hyp', id, 'tests', 10 * id FROM hypotheses;
INSERT INTO edges(created, src_kind, src_id, dst_kind, dst_id, type, run_id)
  SELECT created, 'verdict', id, 'hyp', id, 'supports', 10 * id FROM hypotheses;
INSERT INTO learnings(created, hypothesis_id, verdict_id, text, scope, hardware, driver, toolkit, source)
  SELECT created, id, id, 'learned', 's', 'h', 'd', 't', 's' FROM hypotheses;
INSERT INTO events(at, actor, type, ref_kind, ref_id, text)
  SELECT '2026-01-01T00:00:00Z', 'bench', 'run.began', 'run', i, 'x' FROM n;
COMMIT;)sql",
                              kRuns)),
              "");
  }

  static double own_ms() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
  }

  void ask(const char* what, const std::function<bool()>& query) {
    double best_ms = 1e9;  // of three: others use the caches
    for (int i = 0; i < 3; ++i) {
      const double start_ms = own_ms();
      EXPECT_TRUE(query()) << what;
      best_ms = std::min(best_ms, own_ms() - start_ms);
    }
    EXPECT_LT(best_ms, kMostMs) << what;
    fmt::print("{:>8.2f} ms  {}\n", best_ms, what);
  }

  // Every document of the page, with the filters that find nothing and so look longest.
  void ask_page(Notebook& notebook) {
    for (const std::string path : {"overview",
                                   "runs",
                                   "runs?name=op3&limit=500",
                                   "run/50000",
                                   "samples/50000",
                                   "results",
                                   "results?limit=1000",
                                   "results?before=200000",
                                   "results?name=op3&metric=time",
                                   "results?name=op3&metric=none",
                                   "results?metric=none",
                                   "results?name=op3&variant=avx2",
                                   "results?name=op3&variant=none",
                                   "results?problem=case77*",
                                   "results?mode=no*",
                                   "results?mode=cold",
                                   "results?metric=time&variant=avx*",
                                   "results?subject=77&metric=time&limit=300",
                                   "names",
                                   "subjects?name=op3&limit=1000",
                                   "experiments",
                                   "hypotheses",
                                   "hypotheses?status=refuted",
                                   "hypothesis/500",
                                   "learnings",
                                   "graph",
                                   "graph?around=hyp:500",
                                   "events",
                                   "events?before=50000",
                                   "posts"}) {
      const size_t query = std::min(path.find('?'), path.size());
      const auto params =
          Params::parse(std::string_view(path).substr(std::min(query + 1, path.size())));
      ask(path.c_str(), [&] {
        const auto found = read_document(notebook, machine, path.substr(0, query), params.value());
        if (!found.ok()) fmt::print("{}\n", found.status().message());
        return found.ok();
      });
    }
  }
};

TEST_F(NotebookFullScale, AHundredThousandRunsAnswerAtOnce) {
  { open(); }
  fill();
  Notebook n = open();
  Store& s = n.store();
  ask("open", [&] { return Notebook::open(file).ok(); });
  ask("newest 50 runs", [&] { return s.runs(50)->size() == 50; });
  ask("50 runs in the middle",
      [&] { return s.runs({.before = kRuns / 2, .limit = 50})->size() == 50; });
  ask("newest 50 runs of an op",
      [&] { return s.runs({.name = "op3", .limit = 50})->size() == 50; });
  ask("runs of a rare op", [&] { return s.runs({.name = "oprare"})->size() == 1; });
  ask("runs of an op that has none", [&] { return s.runs({.name = "none"})->empty(); });
  ask("one run whole", [&] { return s.record(kRuns / 2)->metrics.size() == 4; });
  ask("check a run's digest", [&] { return !s.problem_of(kRuns / 2)->empty(); });
  ask("newest 50 hypotheses", [&] { return n.hypotheses(0, 50)->size() == 50; });
  ask("runs of a hypothesis", [&] { return n.runs_of(500, "")->size() == 1; });
  ask("verdicts of a hypothesis", [&] { return n.verdicts_of(500)->size() == 1; });
  ask("newest 50 learnings with their state", [&] {
    auto learnings = n.learnings(0, 50);
    for (const Learning& l : *learnings)
      if (!n.state_of(l, machine).ok()) return false;
    return learnings->size() == 50;
  });
  ask("edges at a hypothesis", [&] { return n.edges_at({"hyp", 500})->size() == 2; });
  ask("graph around a hypothesis", [&] {
    return read_graph(n, {"hyp", 500}, 200, machine)->nodes.size() == 3;
  });
  ask("graph of the newest 200 edges",
      [&] { return read_graph(n, {}, 200, machine)->edges.size() == 200; });
  ask("newest 50 events", [&] { return n.newest_events(50)->size() == 50; });
  ask("events after one", [&] { return n.events(kRuns / 2, 50)->size() == 50; });
  ask_page(n);
  ask("store a whole run", [&] {
    return add_run(n, {metric("avx2", 10), metric("avx512", 8)}) > 0;
  });
  ask("predict, measure, judge, learn", [&] {
    const int64_t h = n.add(hypothesis("-10%")).value();
    add_run(n, {metric("avx2", 10), metric("avx512", 8)}, h);
    return n.give_verdict(h)->verdict.outcome == "supported" && n.learn(h, "it is").ok();
  });
}

}  // namespace
}  // namespace millrace::lab
