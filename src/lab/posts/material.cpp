#include "lab/posts/material.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lab/posts/claims.h"
#include "lab/posts/text.h"

namespace millrace::lab {
namespace {

constexpr size_t kMostRows = 12;
constexpr size_t kDigits = 16;  // of uids and digests

std::string name_of(std::string_view text) {
  std::string out;
  for (const char c : text) out += is_word(c) ? c : '_';
  if (out.empty() || is_digit(out[0])) out.insert(out.begin(), 'm');
  return out.substr(0, 30);
}

std::string effect_without_size(const Prediction& p) {
  const std::string verb = p.direction == "down" ? "falls"
                           : p.direction == "up" ? "rises"
                                                 : "stays";
  return fmt::format("{} {}", p.metric, verb);
}

// The samples decide it: else a change would be refused as ambiguous.
bool is_decided(const JudgedRow& row) {
  return lab::judge(row.log_ratio, row.min_effect) != Speed::ambiguous;
}

class Gathering {
 public:
  explicit Gathering(Notebook& notebook) : notebook_(notebook) {}

  Status add(const Candidate& c) {
    if (c.ref.kind == "run") return add_run(c);
    int64_t hypothesis = c.ref.id;
    Topic topic{.ref = c.ref, .outcome = c.outcome, .strength = c.strength + c.besides};
    topic.imported = c.imported;
    Verdict v;
    if (c.ref.kind == "learn") {
      MILLRACE_ASSIGN(const Learning l, notebook_.learning(c.ref.id));
      topic.learned = l.text;
      topic.scope = l.scope;
      topic.uid = l.uid;
      hypothesis = l.hypothesis;
      MILLRACE_ASSIGN(v, notebook_.verdict(l.verdict));
    } else {
      MILLRACE_ASSIGN(const auto verdicts, notebook_.verdicts_of(hypothesis));
      v = verdicts.back();
    }
    MILLRACE_ASSIGN(const Hypothesis h, notebook_.hypothesis(hypothesis));
    topic.question = h.text;
    topic.reason = h.rationale;
    topic.effect = effect_without_size(h.prediction);
    MILLRACE_TRY(add_verdict(topic, h, v));
    out_.topics.push_back(std::move(topic));
    return {};
  }

  Material take() && { return std::move(out_); }

 private:
  std::string unused(std::string name) {
    const std::string stem = name;
    for (int i = 2; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", stem, i);
    return name;
  }

  // The block's name of a run; one line each.
  Result<std::string> name_run(int64_t id) {
    if (const auto known = runs_.find(id); known != runs_.end()) return known->second;
    MILLRACE_ASSIGN(const RunSummary head, notebook_.store().run(id));
    if (!head.is_sealed()) return error(Code::unavailable, "run:{} has not ended", id);
    const std::string name = unused(fmt::format("r{}", runs_.size() + 1));
    out_.block.runs.push_back({name, head.uid.substr(0, kDigits), head.digest.substr(0, kDigits)});
    return runs_[id] = name;
  }

  Status describe_run(Topic& topic, int64_t id) {
    MILLRACE_ASSIGN(const RunSummary head, notebook_.store().run(id));
    topic.command = head.command;
    topic.machine = head.machine;
    topic.device = head.device;
    topic.date = head.started.substr(0, 10);
    return {};
  }

  std::string add_metric(const std::string& run, const std::string& metric, const Subject& s,
                         const std::string& name) {
    ClaimLine line{.name = unused(name_of(name))};
    line.pattern = {run, metric, s.name, s.problem, s.variant, s.mode, s.n_lanes};
    out_.block.claims.push_back(line);
    return line.name;
  }
  std::string add_other(const std::string& name, ClaimLine line) {
    line.name = unused(name_of(name));
    out_.block.claims.push_back(line);
    return line.name;
  }

  Status add_verdict(Topic& topic, const Hypothesis& h, const Verdict& v) {
    MILLRACE_TRY(describe_run(topic, v.run));
    MILLRACE_ASSIGN(const std::string run, name_run(v.run));
    std::string base = run;
    std::vector<Metric> baseline;
    if (v.baseline_run) {
      MILLRACE_ASSIGN(base, name_run(*v.baseline_run));
      MILLRACE_ASSIGN(baseline, notebook_.store().metrics(*v.baseline_run));
    }
    MILLRACE_ASSIGN(const auto metrics, notebook_.store().metrics(v.run));
    MILLRACE_ASSIGN(const Judgement judgement, lab::judge(h.prediction, metrics, baseline));
    for (const JudgedRow& row : judgement.rows) {
      if (topic.rows.size() == kMostRows || !can_be_named(row.subject)) {
        ++topic.n_left_out;
        continue;
      }
      add_row(topic, h.prediction, row, run, base);
    }
    if (topic.rows.empty())
      return error(Code::unavailable, "{} has no row that a post can name", to_text(topic.ref));
    if (h.prediction.size != 0)
      topic.prediction = add_other(
          "predicted", {.kind = ClaimLine::Kind::fact, .fact = "prediction", .of = {run}});
    finish(topic);
    return {};
  }

  void add_row(Topic& topic, const Prediction& p, const JudgedRow& row, const std::string& run,
               const std::string& base) {
    TopicRow out;
    out.subject = row.subject;
    out.outcome = row.outcome;
    out.label_a = p.compares_variants() ? p.variant_a : "baseline";
    out.label_b = p.compares_variants() ? p.variant_b : "candidate";
    Subject a = row.subject;
    if (p.compares_variants()) a.variant = p.variant_a;
    out.a = add_metric(base, p.metric, a, out.label_a);
    out.b = add_metric(run, p.metric, row.subject, out.label_b);
    if (is_decided(row))
      out.change = add_other("change", {.kind = ClaimLine::Kind::change, .of = {out.a, out.b}});
    topic.rows.push_back(std::move(out));
  }

  Status add_run(const Candidate& c) {
    Topic topic{.ref = c.ref, .strength = c.strength};
    topic.imported = c.imported;
    MILLRACE_TRY(describe_run(topic, c.ref.id));
    MILLRACE_ASSIGN(const std::string run, name_run(c.ref.id));
    MILLRACE_ASSIGN(const auto metrics, notebook_.store().metrics(c.ref.id));
    for (const Metric& m : metrics) {
      if (topic.rows.size() == kMostRows || !can_be_named(m.subject)) {
        ++topic.n_left_out;
        continue;
      }
      TopicRow row;
      row.subject = m.subject;
      row.label_a = m.subject.variant;
      row.a = add_metric(run, m.name, m.subject, m.subject.variant);
      if (m.kernel && m.kernel->floor_percent > 0)
        row.share = add_other(
            "share", {.kind = ClaimLine::Kind::fact, .fact = "floor_share", .of = {row.a}});
      topic.rows.push_back(std::move(row));
    }
    if (topic.rows.empty())
      return error(Code::unavailable, "{} has no row that a post can name", to_text(topic.ref));
    finish(topic);
    out_.topics.push_back(std::move(topic));
    return {};
  }

  // How many samples, and a plot of what has the first row's unit.
  void finish(Topic& topic) {
    topic.samples = add_other(
        "samples", {.kind = ClaimLine::Kind::fact, .fact = "samples", .of = {topic.rows[0].a}});
    PlotLine plot{.name = unused(fmt::format("plot{}", out_.topics.size() + 1))};
    const std::string metric = out_.block.find(topic.rows[0].a)->pattern.metric;
    for (const TopicRow& row : topic.rows)
      for (const std::string& claim : {row.a, row.b})
        if (!claim.empty() && plot.bars.size() < 12 &&
            out_.block.find(claim)->pattern.metric == metric)
          plot.bars.push_back(claim);
    topic.plot = plot.name;
    out_.block.plots.push_back(std::move(plot));
  }

  Notebook& notebook_;
  Material out_;
  std::map<int64_t, std::string> runs_;
  std::set<std::string> names_;
};

}  // namespace

Result<Material> gather(Notebook& notebook, const std::vector<Candidate>& taken) {
  Gathering gathering(notebook);
  for (const Candidate& c : taken) MILLRACE_TRY(gathering.add(c));
  return std::move(gathering).take();
}

}  // namespace millrace::lab
