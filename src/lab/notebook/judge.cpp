#include "lab/notebook/judge.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/utf8.h"
#include "lab/report.h"

namespace millrace::lab {
namespace {

constexpr double kAlpha = 0.05;  // for all rows of a verdict together

struct Pair {
  const Metric *a, *b;
};

bool is_about(const Prediction& p, const Metric& m) {
  const auto fits = [](const std::string& wanted, const std::string& has) {
    return wanted.empty() || wanted == has;
  };
  return m.name == p.metric && fits(p.kind, m.subject.kind) && fits(p.name, m.subject.name) &&
         fits(p.mode, m.subject.mode) &&
         (p.problem.empty() || fnmatch(p.problem.c_str(), m.subject.problem.c_str(), 0) == 0);
}

const Metric* find(const std::vector<Metric>& all, const std::string& name,
                   const Subject& subject) {
  for (const Metric& m : all)
    if (m.name == name && m.subject == subject) return &m;
  return nullptr;
}

std::vector<Pair> pairs_of(const Prediction& p, const std::vector<Metric>& run,
                           const std::vector<Metric>& baseline) {
  std::vector<Pair> out;
  for (const Metric& m : run) {
    if (!is_about(p, m)) continue;
    Subject other = m.subject;
    if (p.compares_variants()) {
      if (m.subject.variant != p.variant_b) continue;
      other.variant = p.variant_a;
    }
    if (const Metric* a = find(p.compares_variants() ? run : baseline, p.metric, other))
      out.push_back({a, &m});
  }
  return out;
}

bool all_positive(const std::vector<double>& samples) {
  return std::all_of(samples.begin(), samples.end(), [](double x) { return x > 0; });
}

// Where no twin was measured the noise is not known: what the machine may not exceed to call
// anything the same is taken instead.
double effect_of(const Pair& pair) {
  const double noise = std::max(pair.a->noise, pair.b->noise);
  return min_effect_of(std::isfinite(noise) ? noise : kMostForSame);
}

JudgedRow judge_pair(const Prediction& p, const Pair& pair, double alpha) {
  JudgedRow row;
  row.subject = pair.b->subject;
  row.a = p.compares_variants() ? p.variant_a : "baseline";
  row.b = p.compares_variants() ? p.variant_b : "run";
  row.unit = pair.b->unit;
  row.value_a = pair.a->value.mid;
  row.value_b = pair.b->value.mid;
  row.min_effect = effect_of(pair);
  row.log_ratio = {-INFINITY, 0, INFINITY};
  const auto &a = pair.a->samples, &b = pair.b->samples;
  row.paired = p.compares_variants() && a.size() == b.size();
  if (!a.empty() && !b.empty() && all_positive(a) && all_positive(b))
    row.log_ratio = (row.paired ? compare_paired(a, b, alpha, row.min_effect)
                                : compare_unpaired(a, b, alpha, row.min_effect))
                        .log_ratio;
  row.outcome = outcome_of(p, row.log_ratio, row.min_effect);
  return row;
}

std::string overall(const std::vector<JudgedRow>& rows) {
  const auto n = [&](std::string_view outcome) {
    return std::count_if(rows.begin(), rows.end(),
                         [&](const JudgedRow& row) { return row.outcome == outcome; });
  };
  if (n("refuted") > 0) return "refuted";
  return n("supported") == std::ssize(rows) ? "supported" : "undecided";
}

double percent_of(double log_ratio) {
  return 100 * std::expm1(log_ratio);
}

}  // namespace

std::string outcome_of(const Prediction& p, const Interval& log_ratio, double min_effect) {
  const Speed speed = judge(log_ratio, min_effect);
  if (p.direction == "same")
    return speed == Speed::same ? "supported" : speed == Speed::ambiguous ? "undecided" : "refuted";
  if (!log_ratio.finite()) return "undecided";
  // Turned so that what was predicted is down.
  const bool up = p.direction == "up";
  const double lo = up ? -log_ratio.hi : log_ratio.lo, hi = up ? -log_ratio.lo : log_ratio.hi;
  const double wanted = -std::fabs(std::log1p(p.size));
  if (hi <= wanted - min_effect) return "supported";
  if (lo >= wanted + min_effect) return "refuted";
  return p.size == 0 && speed == Speed::same ? "refuted" : "undecided";
}

Result<Judgement> judge(const Prediction& prediction, const std::vector<Metric>& run,
                        const std::vector<Metric>& baseline) {
  const std::vector<Pair> pairs = pairs_of(prediction, run, baseline);
  if (pairs.empty())
    return error(Code::not_found,
                 "nothing was measured that the prediction is about ({} of {}); see the rows with "
                 "'millrace lab show'",
                 printable(prediction.metric), printable(subject_text(prediction)));
  Judgement out;
  for (const Pair& pair : pairs)
    out.rows.push_back(judge_pair(prediction, pair, kAlpha / static_cast<double>(pairs.size())));
  out.outcome = overall(out.rows);
  return out;
}

std::string to_json_text(const Judgement& judgement) {
  const auto finite_or_null = [](double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  };
  auto rows = nlohmann::ordered_json::array();
  for (const JudgedRow& row : judgement.rows)
    rows.push_back({{"name", row.subject.name},
                    {"problem", row.subject.problem},
                    {"mode", row.subject.mode},
                    {"a", row.a},
                    {"b", row.b},
                    {"unit", row.unit},
                    {"value_a", row.value_a},
                    {"value_b", row.value_b},
                    {"percent", percent_of(row.log_ratio.mid)},
                    {"percent_lo", finite_or_null(percent_of(row.log_ratio.lo))},
                    {"percent_hi", finite_or_null(percent_of(row.log_ratio.hi))},
                    {"least_percent", 100 * row.min_effect},
                    {"paired", row.paired},
                    {"outcome", row.outcome}});
  return json_text(nlohmann::ordered_json{{"outcome", judgement.outcome}, {"rows", rows}});
}

std::string cases_text(const Verdict& verdict) {
  constexpr size_t kMost = 8;
  const auto judged = nlohmann::json::parse(verdict.json, nullptr, false);
  std::vector<std::string> cases;
  if (judged.is_object() && judged.contains("rows") && judged["rows"].is_array())
    for (const auto& row : judged["rows"])
      if (row.is_object() && row.contains("problem") && row["problem"].is_string())
        if (std::string name = row["problem"];
            std::find(cases.begin(), cases.end(), name) == cases.end())
          cases.push_back(std::move(name));
  if (cases.empty()) return "";
  const size_t n_more = cases.size() > kMost ? cases.size() - kMost : 0;
  cases.resize(cases.size() - n_more);
  return fmt::format("{} {}{}", cases.size() == 1 ? "case" : "cases", fmt::join(cases, ", "),
                     n_more > 0 ? fmt::format(" and {} more", n_more) : "");
}

std::string judgement_table(const Judgement& judgement) {
  size_t problem = 4, a = 1, b = 1;
  for (const JudgedRow& row : judgement.rows) {
    problem = std::max(problem, row.subject.problem.size());
    a = std::max(a, row.a.size());
    b = std::max(b, row.b.size());
  }
  const auto line = [&](const std::vector<std::string>& c) {
    return fmt::format("{:<12} {:<{}} {:<6} {:<{}} {:<{}} {:>9} {:>9} {:>8} {:>18} {:>8} {}\n",
                       c[0], c[1], problem, c[2], c[3], a, c[4], b, c[5], c[6], c[7], c[8], c[9],
                       c[10]);
  };
  std::string out = line(
      {"", "case", "mode", "A", "B", "A", "B", "B/A %", "interval %", "least %", "prediction"});
  for (const JudgedRow& row : judgement.rows) {
    const std::string interval =
        row.log_ratio.finite() ? fmt::format("[{:+.1f}, {:+.1f}]", percent_of(row.log_ratio.lo),
                                             percent_of(row.log_ratio.hi))
                               : "[too few samples]";
    out += line({printable(row.subject.name), printable(row.subject.problem),
                 printable(row.subject.mode), printable(row.a), printable(row.b),
                 short_number(row.value_a), short_number(row.value_b),
                 fmt::format("{:+.1f}", percent_of(row.log_ratio.mid)), interval,
                 fmt::format("{:.1f}", 100 * row.min_effect), row.outcome});
  }
  return out;
}

}  // namespace millrace::lab
