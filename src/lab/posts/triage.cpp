#include "lab/posts/triage.h"

#include <algorithm>
#include <cmath>

namespace millrace::lab {
namespace {

constexpr int kMostLearnings = 200;
constexpr double kLeastEffect = 0.02;  // less is hard to tell and harder to care about

double effect_of(const Judgement& judgement) {
  double out = 0;
  for (const JudgedRow& row : judgement.rows)
    if (row.log_ratio.finite()) out = std::max(out, std::fabs(row.log_ratio.mid));
  return out;
}

double score_of(const Candidate& c) {
  const double strength = c.strength == "several machines" ? 3 : c.strength == "repeated" ? 2 : 1;
  const double surprise = c.outcome == "refuted" ? 1.5 : 1;
  return strength * surprise * (0.1 + c.effect);
}

// What a reader of one verdict would not learn; in words, since no claim is of it.
std::string besides(const Strength& strength) {
  const bool decided = strength.n_supporting + strength.n_refuting > 0;
  std::string out = decided && strength.n_undecided > 0 ? "; other runs of it were undecided" : "";
  if (strength.n_unfinished > 0) out += "; other runs of it were interrupted or failed";
  return out;
}

void leave(Candidate& c, std::string why) {
  c.taken = false;
  c.why = std::move(why);
}

// What the numbers alone say; `named` ones are told also when they are small or told before.
void judge(Candidate& c, bool named) {
  if (c.strength == "contradicted")
    return leave(c,
                 "its runs contradict each other: predict less, or of fewer cases ('millrace lab "
                 "hypothesis --case', '--mode'), and measure that");
  if (c.outcome == "undecided") return leave(c, "its verdict is undecided");
  if (!named && c.outcome == "supported" && c.effect < kLeastEffect)
    return leave(c, "its effect is below 2 % and came as predicted");
  c.taken = true;
  c.score = score_of(c);
  c.why = fmt::format("{}, {}, effect {:.0f} %{}", c.outcome, c.strength,
                      100 * std::expm1(c.effect), c.imported ? ", imported" : "");
}

class Triage {
 public:
  Triage(Notebook& notebook, const Machine& machine, bool named)
      : notebook_(notebook), machine_(machine), named_(named) {}

  Result<Candidate> learning(const Learning& l) {
    Candidate c{.ref = {"learn", l.id}, .text = l.text};
    MILLRACE_ASSIGN(const LearningState state, notebook_.state_of(l, machine_));
    MILLRACE_ASSIGN(const Verdict v, notebook_.verdict(l.verdict));
    c.strength = state.strength.name;
    c.besides = besides(state.strength);
    c.imported = state.imported;
    c.outcome = v.outcome;
    MILLRACE_ASSIGN(const auto told, posts_about(notebook_, c.ref));
    if (!told.empty() && !named_)
      leave(c, fmt::format("post:{} tells it already", told[0]));
    else if (!state.evidence.empty())
      leave(c, state.evidence);
    else if (!state.stale.empty() && !state.imported)
      leave(c, "it is out of date: " + state.stale);
    else
      MILLRACE_TRY(measure(c, v));
    return c;
  }

  Result<Candidate> hypothesis(int64_t id) {
    MILLRACE_ASSIGN(const Hypothesis h, notebook_.hypothesis(id));
    Candidate c{.ref = {"hyp", id}, .text = h.text};
    MILLRACE_ASSIGN(const Strength strength, notebook_.strength_of(id));
    c.strength = strength.name;
    c.besides = besides(strength);
    MILLRACE_ASSIGN(const auto verdicts, notebook_.verdicts_of(id));
    if (verdicts.empty()) {
      leave(c, fmt::format("it has no verdict: 'millrace lab verdict hyp:{}'", id));
      return c;
    }
    c.outcome = verdicts.back().outcome;
    MILLRACE_ASSIGN(const Evidence evidence, notebook_.evidence_of(verdicts.back()));
    c.imported = evidence.imported;
    if (!evidence.problem.empty())
      leave(c, evidence.problem);
    else
      MILLRACE_TRY(measure(c, verdicts.back()));
    return c;
  }

  Result<Candidate> run(int64_t id) {
    MILLRACE_ASSIGN(const RunSummary head, notebook_.store().run(id));
    Candidate c{.ref = {"run", id}, .text = head.command, .strength = "one run"};
    c.imported = !head.origin.empty();
    MILLRACE_ASSIGN(const std::string problem, notebook_.store().problem_of(id));
    if (!problem.empty())
      leave(c, problem);
    else if (head.state != "done")
      leave(c, "its state is " + head.state);
    else {
      c.taken = true;
      c.why = "measured to its end";
    }
    return c;
  }

 private:
  Status measure(Candidate& c, const Verdict& v) {
    MILLRACE_ASSIGN(const Hypothesis h, notebook_.hypothesis(v.hypothesis));
    MILLRACE_ASSIGN(const auto metrics, notebook_.store().metrics(v.run));
    std::vector<Metric> baseline;
    if (v.baseline_run) {
      MILLRACE_ASSIGN(baseline, notebook_.store().metrics(*v.baseline_run));
    }
    MILLRACE_ASSIGN(const Judgement judgement, lab::judge(h.prediction, metrics, baseline));
    c.effect = effect_of(judgement);
    judge(c, named_);
    return {};
  }

  Notebook& notebook_;
  const Machine& machine_;
  bool named_;
};

}  // namespace

Result<std::vector<int64_t>> posts_about(Notebook& notebook, const NodeRef& ref) {
  std::vector<int64_t> out;
  MILLRACE_ASSIGN(const auto edges, notebook.edges_at(ref));
  for (const Edge& edge : edges)
    if (edge.from == ref && edge.type == "used_in" && edge.to.kind == "post")
      out.push_back(edge.to.id);
  return out;
}

Result<std::vector<Candidate>> triage(Notebook& notebook, const Machine& machine,
                                      const std::vector<NodeRef>& refs) {
  Triage rules(notebook, machine, !refs.empty());
  std::vector<Candidate> out;
  for (const NodeRef& ref : refs) {
    if (ref.kind == "learn") {
      MILLRACE_ASSIGN(const Learning l, notebook.learning(ref.id));
      MILLRACE_ASSIGN(out.emplace_back(), rules.learning(l));
    } else if (ref.kind == "hyp") {
      MILLRACE_ASSIGN(out.emplace_back(), rules.hypothesis(ref.id));
    } else if (ref.kind == "run") {
      MILLRACE_ASSIGN(out.emplace_back(), rules.run(ref.id));
    } else {
      return error(Code::invalid_argument, "a post is written about learn:ID, hyp:ID or run:ID");
    }
  }
  if (refs.empty()) {
    MILLRACE_ASSIGN(const auto learnings, notebook.learnings(0, kMostLearnings));
    for (const Learning& l : learnings) {
      MILLRACE_ASSIGN(out.emplace_back(), rules.learning(l));
    }
  }
  if (refs.empty())
    std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(b.taken, b.score) < std::pair(a.taken, a.score);
    });
  return out;
}

}  // namespace millrace::lab
