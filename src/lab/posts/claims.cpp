#include "lab/posts/claims.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/sqlite.h"
#include "base/utf8.h"
#include "lab/notebook/conditions.h"
#include "lab/posts/scrub.h"
#include "lab/posts/text.h"
#include "lab/report.h"

namespace millrace::lab {
namespace {

using Kind = ClaimLine::Kind;

bool fits(const std::string& pattern, const std::string& text) {
  return pattern == text || fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool fits(const MetricPattern& p, const Metric& m) {
  return p.metric == m.name && fits(p.name, m.subject.name) && fits(p.problem, m.subject.problem) &&
         fits(p.variant, m.subject.variant) && fits(p.mode, m.subject.mode) &&
         (p.n_lanes == 0 || p.n_lanes == m.subject.n_lanes);
}

// "rows" of "rows=8 n=576 w=q8_0"; less than 0 where the key has none.
double key_value(const std::string& key, const std::string& name) {
  const std::string wanted = " " + name + "=";
  const std::string text = " " + key;
  const size_t at = text.find(wanted);
  double out = -1;
  if (at != text.npos)
    std::from_chars(text.data() + at + wanted.size(), text.data() + text.size(), out);
  return out;
}

double statistic_of(const Metric& m, const std::string& statistic) {
  if (statistic == "low") return m.value.lo;
  if (statistic == "high") return m.value.hi;
  if (statistic == "best" && !m.samples.empty())
    return m.better == "lower" ? *std::min_element(m.samples.begin(), m.samples.end())
                               : *std::max_element(m.samples.begin(), m.samples.end());
  // From the samples, not from what was stored beside them.
  return m.samples.empty() ? m.value.mid : median(m.samples);
}

bool all_positive(const std::vector<double>& samples) {
  return std::all_of(samples.begin(), samples.end(), [](double x) { return x > 0; });
}

// What was measured elsewhere was measured under other hardware; only its source can be compared.
std::string stale_of(const RunRecord& record, bool imported, const Machine& machine) {
  std::set<std::pair<std::string, std::string>> subjects;
  for (const Metric& m : record.metrics) subjects.emplace(m.subject.kind, m.subject.name);
  for (const auto& [kind, name] : subjects) {
    Conditions then = conditions_of(record, kind, name);
    const Conditions now = conditions_now(machine, record.head.device, kind, name);
    if (imported) {
      then.hardware = now.hardware;
      then.driver = now.driver;
      then.toolkit = now.toolkit;
    }
    if (const std::string why = why_stale(then, now); !why.empty()) return why;
  }
  return "";
}

Result<std::vector<int64_t>> runs_with_uid(Store& store, const std::string& prefix) {
  Query query(store.connection(), store.path(),
              "SELECT id FROM runs WHERE uid >= ?1 AND uid < ?1 || 'g' LIMIT 2");
  query.bind(prefix);
  std::vector<int64_t> out;
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) return out;
    out.push_back(query.integer(0));
  }
}

}  // namespace

std::string number_text(double value, std::string_view unit) {
  if (unit == "x") return fmt::format("{:.{}f}x", value, std::fabs(value) < 10 ? 2 : 1);
  // Close to all of it, what counts is what is missing.
  const bool is_fine = std::fabs(value) < 9.95 || (value > 95 && value < 100);
  if (unit == "%") return fmt::format("{:.{}f} %", value, is_fine ? 1 : 0);
  const bool is_whole = value == std::floor(value) && std::fabs(value) < 1e15;
  const std::string number = is_whole ? fmt::format("{:.0f}", value) : short_number(value);
  return unit.empty() ? number : fmt::format("{} {}", number, unit);
}

int64_t rows_of(const Metric& m) {
  if (m.kernel)
    if (const double rows = key_value(m.kernel->key, "rows"); rows > 0)
      return static_cast<int64_t>(rows);
  const std::string& name = m.subject.problem;
  for (size_t at = 0; at < name.size(); ++at) {
    if (!is_digit(name[at]) || (at > 0 && name[at - 1] != '_')) continue;
    int64_t rows = 0;
    const auto end = std::from_chars(name.data() + at, name.data() + name.size(), rows).ptr;
    if (end != name.data() + name.size() && *end == 'x') return rows;
  }
  return 0;
}

bool can_be_named(const Subject& s) {
  return std::ranges::all_of(
      std::array{&s.name, &s.problem, &s.variant, &s.mode}, [](const std::string* text) {
        return text->size() < 200 && text->find_first_of("|<>*?[]\\\n") == text->npos &&
               text->find("--") == text->npos && first_unseen(*text).empty() &&
               trimmed(*text) == *text;
      });
}

Result<Claims> Claims::of(ClaimsBlock block, Notebook& notebook, const Machine& machine) {
  Claims out;
  out.block_ = std::move(block);
  out.runs_.reserve(out.block_.runs.size());
  for (const RunLine& line : out.block_.runs) MILLRACE_TRY(out.load(notebook, machine, line));
  for (const ClaimLine& line : out.block_.claims) {
    ClaimValue value = out.value_of(line);
    if (value.problem.empty() && !std::isfinite(value.value))
      value.problem = "it has no finite value (too few samples for an interval?)";
    if (value.problem.empty() && value.text.empty())
      value.text = number_text(value.value, value.unit);
    out.values_.emplace(line.name, std::move(value));
  }
  return out;
}

Status Claims::load(Notebook& notebook, const Machine& machine, const RunLine& line) {
  RunState& out = runs_.emplace_back(RunState{.line = line});
  const std::string name = fmt::format("run {} ({})", line.uid, line.name);
  MILLRACE_ASSIGN(const auto found, runs_with_uid(notebook.store(), line.uid));
  if (found.size() != 1) {
    out.problem = fmt::format("{} is {}", name,
                              found.empty() ? "not in the store: the evidence was deleted, or has "
                                              "to be imported ('millrace lab import', or --runs)"
                                            : "the beginning of several: write more of its uid");
    return {};
  }
  out.id = found[0];
  MILLRACE_ASSIGN(const std::string problem, notebook.store().problem_of(out.id));
  MILLRACE_ASSIGN(RunRecord record, notebook.store().record(out.id));
  out.head = record.head;
  out.imported = !record.head.origin.empty();
  if (!problem.empty())
    out.problem = fmt::format("{}: {}", name, problem);
  else if (!record.head.digest.starts_with(line.digest))
    out.problem = fmt::format("{}: its digest is {}, and the post was written about {}", name,
                              record.head.digest.substr(0, 16), line.digest);
  else if (record.head.state != "done")
    out.problem = fmt::format("{} is no evidence: its state is {}", name, record.head.state);
  out.stale = stale_of(record, out.imported, machine);
  if (record.head.experiment) {
    const auto experiment = notebook.experiment(*record.head.experiment);
    if (experiment.ok())
      if (const auto h = notebook.hypothesis(experiment.value().hypothesis); h.ok())
        out.predicted_percent = 100 * std::fabs(h.value().prediction.size);
  }
  out.metrics = std::move(record.metrics);
  learn_names(out);
  return {};
}

void Claims::learn_names(const RunState& run) {
  const auto add = [this](const std::string& text) {
    if (!text.empty()) known_.insert(code_text(text));
  };
  for (const Metric& m : run.metrics) {
    for (const std::string* text : {&m.subject.name, &m.subject.problem, &m.subject.variant,
                                    &m.subject.mode, &m.name, &m.unit})
      add(*text);
    if (m.kernel) add(m.kernel->key);
  }
  add(run.head.command);
  add(run.head.machine);
  add(run.head.commit);
  add(run.line.uid);
}

const RunState* Claims::run(std::string_view name) const {
  for (const RunState& state : runs_)
    if (state.line.name == name) return &state;
  return nullptr;
}

const ClaimValue* Claims::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

const Metric* Claims::metric_of(std::string_view claim) const {
  const auto found = metrics_.find(claim);
  return found == metrics_.end() ? nullptr : found->second;
}

std::vector<const Metric*> Claims::metrics_of(const MetricPattern& pattern) const {
  std::vector<const Metric*> out;
  const RunState* state = run(pattern.run);
  if (state == nullptr || !state->problem.empty()) return out;
  for (const Metric& m : state->metrics)
    if (fits(pattern, m)) out.push_back(&m);
  std::stable_sort(out.begin(), out.end(), [](const Metric* a, const Metric* b) {
    return std::pair(a->subject.variant, rows_of(*a)) < std::pair(b->subject.variant, rows_of(*b));
  });
  return out;
}

bool Claims::is_known(std::string_view text) const {
  return known_.contains(std::string(text));
}

ClaimValue Claims::value_of(const ClaimLine& line) {
  if (line.kind == Kind::fact && line.fact == "prediction") return predicted_value(line);
  ClaimValue inherited;
  for (const std::string& name : line.of) {
    const ClaimValue* other = find(name);
    if (other == nullptr || !other->problem.empty()) {
      inherited.problem = fmt::format("{} has no value", name);
      return inherited;
    }
    inherited.runs.insert(other->runs.begin(), other->runs.end());
    inherited.subjects.insert(other->subjects.begin(), other->subjects.end());
  }
  ClaimValue out = line.kind == Kind::metric ? metric_value(line)
                   : line.kind == Kind::fact ? fact_value(line)
                                             : arithmetic_value(line);
  out.runs.insert(inherited.runs.begin(), inherited.runs.end());
  out.subjects.insert(inherited.subjects.begin(), inherited.subjects.end());
  return out;
}

ClaimValue Claims::metric_value(const ClaimLine& line) {
  ClaimValue out;
  out.runs = {line.pattern.run};
  const RunState& state = *run(line.pattern.run);
  if (!state.problem.empty()) {
    out.problem = state.problem;
    return out;
  }
  const auto found = metrics_of(line.pattern);
  if (found.size() != 1) {
    out.problem = fmt::format("run {} ({}) has {} measurements like that; a claim is one of them",
                              state.line.uid, state.line.name, found.size());
    return out;
  }
  metrics_[line.name] = found[0];
  out.value = statistic_of(*found[0], line.statistic);
  out.unit = found[0]->unit;
  out.subjects = {found[0]->subject.name};
  return out;
}

ClaimValue Claims::predicted_value(const ClaimLine& line) const {
  ClaimValue out;
  const RunState& state = *run(line.of[0]);
  out.runs = {state.line.name};
  out.value = state.predicted_percent;
  out.unit = "%";
  if (!state.problem.empty())
    out.problem = state.problem;
  else if (out.value == 0)
    out.problem = fmt::format("no prediction with a size was made before run {} ({})",
                              state.line.uid, state.line.name);
  return out;
}

ClaimValue Claims::fact_value(const ClaimLine& line) const {
  ClaimValue out;
  const Metric* m = metric_of(line.of[0]);
  if (m == nullptr) {
    out.problem = fmt::format("{} is no measurement, so it has no facts", line.of[0]);
    return out;
  }
  const KernelFacts none{};
  const KernelFacts& k = m->kernel ? *m->kernel : none;
  const std::map<std::string, std::pair<double, std::string>> facts = {
      {"samples", {static_cast<double>(m->samples.size()), ""}},
      {"lanes", {m->subject.n_lanes, ""}},
      {"noise", {100 * std::expm1(m->noise), "%"}},
      {"bytes", {k.bytes, "bytes"}},
      {"kilobytes", {k.bytes / 1e3, "kB"}},
      {"megabytes", {k.bytes / 1e6, "MB"}},
      {"bandwidth", {k.gbps, "GB/s"}},
      {"rate", {k.gflops, "GFLOP/s"}},
      {"floor", {k.floor_us, "us"}},
      {"floor_share", {k.floor_percent, "%"}},
  };
  const auto found = facts.find(line.fact);
  if (found != facts.end() && (m->kernel || found->second.second.empty() || line.fact == "noise")) {
    out.value = found->second.first;
    out.unit = found->second.second;
    return out;
  }
  out.value = key_value(k.key, line.fact);
  if (out.value < 0 && line.fact == "rows") out.value = static_cast<double>(lab::rows_of(*m));
  if (out.value <= 0)
    out.problem = fmt::format("a measurement of {} has no fact '{}'", m->subject.name, line.fact);
  return out;
}

// Whether the samples tell the two apart at all: by round inside a run, by intervals of two runs.
void Claims::compare(const ClaimLine& line, ClaimValue& out) const {
  const Metric *a = metric_of(line.of[0]), *b = metric_of(line.of[1]);
  if (a == nullptr || b == nullptr) return;
  const RunState& run_a = *run(block_.find(line.of[0])->pattern.run);
  const RunState& run_b = *run(block_.find(line.of[1])->pattern.run);
  if (a->samples.empty() || b->samples.empty() || !all_positive(a->samples) ||
      !all_positive(b->samples))
    out.ambiguous = "there are no samples to compare";
  if (!out.ambiguous.empty()) return;
  const double noise = std::max(a->noise, b->noise);
  const double least = min_effect_of(std::isfinite(noise) ? noise : kMostForSame);
  // A sweep measures its cases in the same rounds; bench does so with the variants of one case.
  const bool same_rounds = a->subject.name == b->subject.name &&
                           (a->subject.problem == b->subject.problem ||
                            run_a.head.command.starts_with("millrace lab cliffs "));
  const bool paired = &run_a == &run_b && same_rounds && a->subject.mode == b->subject.mode &&
                      a->samples.size() == b->samples.size();
  constexpr double kAlpha = 0.05;
  const Comparison c = paired ? compare_paired(a->samples, b->samples, kAlpha, least)
                              : compare_unpaired(a->samples, b->samples, kAlpha, least);
  if (c.speed == Speed::ambiguous)
    out.ambiguous = fmt::format(
        "the samples do not decide it (interval {:+.1f} to {:+.1f} %, least effect {:.1f} %)",
        100 * std::expm1(c.log_ratio.lo), 100 * std::expm1(c.log_ratio.hi), 100 * least);
}

// What may not be computed with each other: units that differ; measurements of different machines,
// however they got here; the best of one and the median of another.
std::string Claims::why_not_together(const std::vector<std::string>& names) const {
  std::set<std::string> machines, statistics;
  for (const std::string& name : names) {
    const ClaimValue &first = *find(names[0]), &value = *find(name);
    if (value.unit != first.unit)
      return fmt::format("{} is in '{}' and {} in '{}'", names[0], first.unit, name, value.unit);
    for (const std::string& run_name : value.runs) machines.insert(run(run_name)->head.machine);
    if (const ClaimLine& line = *block_.find(name); line.kind == Kind::metric)
      statistics.insert(line.statistic);
  }
  if (machines.size() > 1) return "they come from different machines";
  if (statistics.size() > 1) return "one is the median and the other is not";
  return "";
}

// One op over another is a number without a meaning, unless the block says that it is meant. A part
// of a sum of several is one of them.
std::string Claims::why_not_comparable(const ClaimLine& line) const {
  const ClaimValue &a = *find(line.of[0]), &b = *find(line.of[1]);
  const bool is_part = line.kind == Kind::share && std::ranges::includes(b.subjects, a.subjects);
  if (line.across || is_part || a.subjects == b.subjects) return "";
  return fmt::format(
      "{} is of {} and {} of {}: write '| across ops' behind it if that is what is compared",
      line.of[0], fmt::join(a.subjects, ", "), line.of[1], fmt::join(b.subjects, ", "));
}

ClaimValue Claims::arithmetic_value(const ClaimLine& line) const {
  ClaimValue out;
  const bool divides = line.kind != Kind::sum && line.kind != Kind::difference;
  out.problem = why_not_together(line.of);
  if (out.problem.empty() && divides) out.problem = why_not_comparable(line);
  if (!out.problem.empty()) return out;
  const ClaimValue &a = *find(line.of[0]), &b = *find(line.of[1]);
  if (divides && (b.value == 0 || a.value == 0)) {
    out.problem = "a ratio with nothing";
    return out;
  }
  out.unit = divides ? "%" : a.unit;
  const double percent = divides ? 100 * (b.value / a.value - 1) : 0;
  switch (line.kind) {
    case Kind::sum:
      for (const std::string& name : line.of) out.value += find(name)->value;
      return out;
    case Kind::difference:
      out.value = a.value - b.value;
      return out;
    case Kind::ratio:
      out.value = a.value / b.value;
      out.unit = "x";
      compare(line, out);
      return out;
    case Kind::share:
      out.value = 100 * a.value / b.value;
      if (out.value < 0 || out.value > 100) out.problem = "a share of more than the whole";
      return out;
    case Kind::change:
      out.value = percent;
      out.text = (percent < 0 ? "" : "+") + number_text(percent, "%");
      break;
    default:
      out.value = line.kind == Kind::rise ? percent : -percent;
      if (out.value < 0)
        out.problem = fmt::format("it is a {}", line.kind == Kind::rise ? "drop" : "rise");
  }
  compare(line, out);
  return out;
}

std::vector<std::string> Claims::wrong_shares() const {
  std::map<std::string, std::pair<double, std::set<std::string>>> wholes;
  for (const ClaimLine& line : block_.claims) {
    if (line.kind != Kind::share || !find(line.name)->problem.empty()) continue;
    auto& [sum, parts] = wholes[line.of[1]];
    if (parts.insert(line.of[0]).second) sum += find(line.name)->value;
  }
  std::vector<std::string> out;
  for (const auto& [whole, held] : wholes)
    if (held.first > 100.5)
      out.push_back(fmt::format("the shares of {} come to {:.0f} % together", whole, held.first));
  return out;
}

}  // namespace millrace::lab
