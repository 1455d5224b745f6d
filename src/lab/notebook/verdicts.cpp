// From runs to verdicts, from verdicts to learnings, and from runs to claims: everything that reads
// measurements and writes what follows from them.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/sqlite.h"
#include "base/utf8.h"
#include "lab/notebook/notebook.h"

namespace millrace::lab {

// The one named, or the newest of the hypothesis: measured to its end, and unchanged since.
Result<int64_t> Notebook::run_to_judge(const Hypothesis& h, std::optional<int64_t> wanted) {
  MILLRACE_ASSIGN(const auto runs, runs_of(h.id, "candidate"));
  if (runs.empty())
    return error(Code::not_found,
                 "hyp:{} has no run yet: measure with 'millrace lab run hyp:{} -- bench ...'", h.id,
                 h.id);
  const auto found = std::find_if(runs.begin(), runs.end(), [&](const RunSummary& run) {
    return wanted ? run.id == *wanted : run.state == "done";
  });
  if (found == runs.end() && wanted)
    return error(Code::not_found, "run:{} was not made for hyp:{}", *wanted, h.id);
  if (found == runs.end() || found->state != "done") {
    const RunSummary& run = found == runs.end() ? runs.front() : *found;
    return error(Code::unavailable, "run:{} is no evidence: its state is {}", run.id, run.state);
  }
  return found->id;
}

// Newest first; one that is none where variants are compared.
Result<std::vector<std::optional<int64_t>>> Notebook::baselines_of(const Hypothesis& h) {
  std::vector<std::optional<int64_t>> out;
  if (h.prediction.compares_variants() || h.prediction.baseline_run)
    return std::vector{h.prediction.compares_variants() ? std::optional<int64_t>()
                                                        : h.prediction.baseline_run};
  MILLRACE_ASSIGN(const auto runs, runs_of(h.id, "baseline"));
  for (const RunSummary& run : runs)
    if (run.state == "done") out.emplace_back(run.id);
  if (!out.empty()) return out;
  return error(Code::not_found,
               "hyp:{} compares runs and has no baseline: measure one with 'millrace lab run "
               "--baseline hyp:{} -- bench ...'",
               h.id, h.id);
}

Result<Judgement> Notebook::judge_runs(const Hypothesis& h, int64_t run,
                                       std::optional<int64_t> baseline) {
  for (const int64_t id : baseline ? std::vector{run, *baseline} : std::vector{run}) {
    MILLRACE_ASSIGN(const std::string problem, store_.problem_of(id));
    if (!problem.empty()) return error(Code::unavailable, "{}", problem);
  }
  MILLRACE_ASSIGN(const auto metrics, store_.metrics(run));
  std::vector<Metric> base;
  if (baseline) {
    MILLRACE_ASSIGN(const RunSummary a, store_.run(*baseline));
    MILLRACE_ASSIGN(const RunSummary b, store_.run(run));
    if (a.machine != b.machine)
      return error(Code::unavailable,
                   "run:{} and run:{} come from different machines: measure a baseline on the same "
                   "one",
                   *baseline, run);
    MILLRACE_ASSIGN(base, store_.metrics(*baseline));
  }
  return judge(h.prediction, metrics, base);
}

Status Notebook::add_verdict_edge(const Verdict& v) {
  const std::string type = v.outcome == "supported" ? "supports"
                           : v.outcome == "refuted" ? "refutes"
                                                    : "leaves_open";
  Edge edge;
  edge.from = {"verdict", v.id};
  edge.to = {"hyp", v.hypothesis};
  edge.type = type;
  edge.run = v.run;
  return insert(edge).status();
}

// Stored once, however often it is asked for.
Result<Verdict> Notebook::keep_verdict(int64_t hypothesis, int64_t run,
                                       std::optional<int64_t> baseline,
                                       const Judgement& judgement) {
  Verdict v;
  v.hypothesis = hypothesis;
  v.run = run;
  v.baseline_run = baseline;
  v.outcome = judgement.outcome;
  v.method = kJudgeMethod;
  v.json = to_json_text(judgement);
  MILLRACE_ASSIGN(const auto before, verdicts_of(hypothesis));
  for (const Verdict& old : before)
    if (old.run == run && old.baseline_run == baseline && old.method == v.method &&
        old.json == v.json)
      return old;
  Transaction transaction(store_.connection(), store_.path());
  MILLRACE_TRY(transaction.begin());
  MILLRACE_ASSIGN(v.id, insert(v));
  MILLRACE_TRY(add_verdict_edge(v));
  MILLRACE_TRY(add_event("verdict.given", {"verdict", v.id}, v.outcome));
  MILLRACE_TRY(transaction.commit());
  return verdict(v.id);
}

// Every run that was made for the hypothesis counts, against every baseline of it, also those that
// nobody asked about: else who repeats either until it suits has one verdict, and that one suits.
Status Notebook::judge_the_rest(const Hypothesis& h, int64_t but,
                                const std::vector<std::optional<int64_t>>& baselines) {
  MILLRACE_ASSIGN(auto runs, runs_of(h.id, "candidate"));
  MILLRACE_ASSIGN(const auto verdicts, verdicts_of(h.id));
  std::reverse(runs.begin(), runs.end());  // oldest first
  for (const RunSummary& run : runs)
    for (const std::optional<int64_t>& baseline : baselines) {
      const bool is_judged = std::any_of(verdicts.begin(), verdicts.end(), [&](const Verdict& v) {
        return v.run == run.id && v.baseline_run == baseline;
      });
      const bool is_asked = run.id == but && baseline == baselines.front();
      if (is_asked || run.state != "done" || is_judged) continue;
      const auto judgement = judge_runs(h, run.id, baseline);
      if (!judgement.ok()) continue;  // it measured something else, or was changed
      MILLRACE_TRY(keep_verdict(h.id, run.id, baseline, judgement.value()).status());
    }
  return {};
}

Result<Notebook::Judged> Notebook::give_verdict(int64_t id, std::optional<int64_t> wanted) {
  MILLRACE_ASSIGN(const Hypothesis h, hypothesis(id));
  MILLRACE_ASSIGN(const int64_t run, run_to_judge(h, wanted));
  MILLRACE_ASSIGN(const auto baselines, baselines_of(h));
  Judged out;
  MILLRACE_ASSIGN(out.judgement, judge_runs(h, run, baselines.front()));
  MILLRACE_TRY(judge_the_rest(h, run, baselines));
  MILLRACE_ASSIGN(out.verdict, keep_verdict(id, run, baselines.front(), out.judgement));
  return out;
}

Result<int64_t> Notebook::learn(int64_t id, const std::string& text, std::string scope) {
  MILLRACE_TRY(check_text("the learning", text));
  MILLRACE_ASSIGN(const Hypothesis h, hypothesis(id));
  MILLRACE_ASSIGN(const auto verdicts, verdicts_of(id));
  if (verdicts.empty())
    return error(Code::not_found,
                 "hyp:{} has no verdict to learn from: 'millrace lab verdict hyp:{}' computes it",
                 id, id);
  MILLRACE_ASSIGN(const Evidence evidence, evidence_of(verdicts.back()));
  if (!evidence.problem.empty()) return error(Code::unavailable, "{}", evidence.problem);
  MILLRACE_ASSIGN(const RunRecord run, store_.record(verdicts.back().run));
  if (scope.empty()) {
    scope = fmt::format("{}; {}", run.head.device, subject_text(h.prediction));
    if (const std::string cases = cases_text(verdicts.back());
        !cases.empty() && cases != "case " + h.prediction.problem)
      scope += "; " + cases;
  }
  MILLRACE_TRY(check_text("the scope", scope));
  Learning learning;
  learning.hypothesis = id;
  learning.verdict = verdicts.back().id;
  learning.text = text;
  learning.scope = scope;
  learning.conditions =
      conditions_of(run, h.prediction.name.empty() ? "" : run.head.kind, h.prediction.name);
  Transaction transaction(store_.connection(), store_.path());
  MILLRACE_TRY(transaction.begin());
  MILLRACE_ASSIGN(const int64_t learned, insert(learning));
  Edge edge;
  edge.from = {"learn", learned};
  edge.to = {"hyp", id};
  edge.type = "derived_from";
  edge.run = run.head.id;
  MILLRACE_TRY(insert(edge).status());
  MILLRACE_TRY(add_event("learning.added", {"learn", learned}, text));
  MILLRACE_TRY(transaction.commit());
  return learned;
}

Result<Evidence> Notebook::evidence_of(const Verdict& v) {
  Evidence out;
  for (const int64_t id :
       v.baseline_run ? std::vector{v.run, *v.baseline_run} : std::vector{v.run}) {
    MILLRACE_ASSIGN(const std::string problem, store_.problem_of(id));
    if (out.problem.empty()) out.problem = problem;
    if (const auto run = store_.run(id); run.ok()) out.imported |= !run.value().origin.empty();
  }
  return out;
}

// By the runs behind it that are sound: of each run and baseline, the newest verdict.
Result<Strength> Notebook::strength_of(int64_t hypothesis) {
  MILLRACE_ASSIGN(const auto verdicts, verdicts_of(hypothesis));
  std::map<int64_t, std::map<std::optional<int64_t>, std::string>> outcomes;
  std::set<int64_t> imported;
  for (const Verdict& v : verdicts) {
    MILLRACE_ASSIGN(const Evidence evidence, evidence_of(v));
    if (!evidence.problem.empty()) continue;
    outcomes[v.run][v.baseline_run] = v.outcome;
    if (evidence.imported) imported.insert(v.run);
  }
  Strength out;
  MILLRACE_ASSIGN(const auto runs, runs_of(hypothesis, ""));
  for (const RunSummary& run : runs)
    out.n_unfinished += run.state == "interrupted" || run.state == "failed";
  out.n_imported = static_cast<int>(imported.size());
  std::set<std::string> machines;
  for (const auto& [run, against] : outcomes) {
    const auto has = [&against = against](std::string_view outcome) {
      return std::any_of(against.begin(), against.end(),
                         [&](const auto& one) { return one.second == outcome; });
    };
    const bool supports = has("supported"), refutes = has("refuted");
    out.n_supporting += supports;
    out.n_refuting += refutes;
    out.n_undecided += !supports && !refutes;
    if (!supports && !refutes) continue;
    if (const auto head = store_.run(run); head.ok()) machines.insert(head.value().machine);
  }
  out.n_machines = static_cast<int>(machines.size());
  const int n = out.n_supporting + out.n_refuting;
  out.name = n == 0                                       ? "undecided"
             : out.n_supporting > 0 && out.n_refuting > 0 ? "contradicted"
             : out.n_machines > 1                         ? "several machines"
             : n > 1                                      ? "repeated"
                                                          : "one run";
  return out;
}

Result<LearningState> Notebook::state_of(const Learning& learning, const Machine& machine) {
  LearningState out;
  MILLRACE_ASSIGN(out.strength, strength_of(learning.hypothesis));
  MILLRACE_ASSIGN(const Hypothesis h, hypothesis(learning.hypothesis));
  MILLRACE_ASSIGN(const Verdict v, verdict(learning.verdict));
  MILLRACE_ASSIGN(const Evidence evidence, evidence_of(v));
  out.evidence = evidence.problem;
  out.imported = evidence.imported;
  const auto run = store_.run(v.run);
  if (!run.ok()) return out;
  out.stale = why_stale(
      learning.conditions,
      conditions_now(machine, run.value().device, h.prediction.name.empty() ? "" : run.value().kind,
                     h.prediction.name));
  return out;
}

namespace {

Result<double> statistic_of(const Metric& metric, const std::string& statistic) {
  double value = metric.value.mid;
  if (statistic == "low") value = metric.value.lo;
  if (statistic == "high") value = metric.value.hi;
  if (statistic == "best" && !metric.samples.empty())
    value = metric.better == "lower"
                ? *std::min_element(metric.samples.begin(), metric.samples.end())
                : *std::max_element(metric.samples.begin(), metric.samples.end());
  if (!std::isfinite(value))
    return error(Code::unavailable, "too few samples for an interval of {}",
                 printable(metric.name));
  return value;
}

Result<Metric> find_metric(Store& store, const Claim& claim) {
  MILLRACE_ASSIGN(const std::string problem, store.problem_of(claim.run));
  if (!problem.empty()) return error(Code::unavailable, "{}", problem);
  MILLRACE_ASSIGN(auto metrics, store.metrics(claim.run));
  for (Metric& m : metrics)
    if (m.subject == claim.subject && m.name == claim.metric) return std::move(m);
  return error(Code::not_found, "run:{} has no {} of {} {} {}", claim.run, printable(claim.metric),
               printable(claim.subject.name), printable(claim.subject.problem),
               printable(claim.subject.variant));
}

}  // namespace

Result<double> Notebook::value_of(const Claim& claim) {
  MILLRACE_ASSIGN(const Metric metric, find_metric(store_, claim));
  return statistic_of(metric, claim.statistic);
}

Result<int64_t> Notebook::add(const Claim& asked) {
  MILLRACE_TRY(check_text("the claim", asked.text));
  Claim claim = asked;
  MILLRACE_ASSIGN(const Metric metric, find_metric(store_, claim));
  MILLRACE_ASSIGN(claim.value, statistic_of(metric, claim.statistic));
  claim.unit = metric.unit;
  MILLRACE_ASSIGN(const RunRecord run, store_.record(claim.run));
  claim.conditions = conditions_of(run, claim.subject.kind, claim.subject.name);
  Transaction transaction(store_.connection(), store_.path());
  MILLRACE_TRY(transaction.begin());
  MILLRACE_ASSIGN(const int64_t id, insert(claim));
  MILLRACE_TRY(add_event("claim.added", {"claim", id}, claim.text));
  MILLRACE_TRY(transaction.commit());
  return id;
}

Result<ClaimState> Notebook::state_of(const Claim& claim, const Machine& machine) {
  ClaimState out;
  const auto run = store_.run(claim.run);
  if (run.ok()) {
    out.imported = !run.value().origin.empty();
    out.stale = why_stale(claim.conditions, conditions_now(machine, run.value().device,
                                                           claim.subject.kind, claim.subject.name));
  }
  const auto value = value_of(claim);
  if (!value.ok()) {
    out.status = "no evidence";
    out.problem = value.status().message();
    return out;
  }
  out.value_now = value.value();
  out.status = out.value_now == claim.value ? "ok" : "changed";
  return out;
}

}  // namespace millrace::lab
