#include "lab/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "lab/plan.h"
#include "lab/report.h"

namespace millrace::lab {
namespace {

constexpr double kAlpha = 0.05;  // for all comparisons of one command together

double corrected(size_t n) {
  return kAlpha / static_cast<double>(std::max<size_t>(1, n));
}

double percent_of(double log_ratio) {
  return 100 * std::expm1(log_ratio);
}

const Row* same_row(const std::vector<Row>& rows, const Row& like) {
  for (const Row& row : rows)
    if (row.op == like.op && row.problem == like.problem && row.variant == like.variant &&
        row.mode == like.mode && row.n_lanes == like.n_lanes)
      return &row;
  return nullptr;
}

// What the table picks for the case on this target: its class is the one a profile may choose in.
const Variant* default_variant(const CaseRun& run, const Target& target) {
  const ArgsBox args = shape_of(run.problem);
  for (const Variant& v : run.op->variants())
    if (target.has(v) && (v.takes == nullptr || v.takes(args.bytes))) return &v;
  return nullptr;
}

// Calls visit(default's series, candidate's series, least effect) for every pair a profile could
// turn round.
void for_each_rival(
    const std::vector<CaseRun>& runs, const Target& target,
    const std::function<void(const CaseRun&, const Series&, const Series&)>& visit) {
  const std::string_view mode = target.modes().front();
  for (const CaseRun& run : runs) {
    const Variant* first = default_variant(run, target);
    const Series* base = first == nullptr ? nullptr : run.find(first->name, mode);
    if (base == nullptr) continue;
    for (const Series& s : run.series)
      if (s.mode == mode && s.variant != first && s.variant->numerics == first->numerics)
        visit(run, *base, s);
  }
}

}  // namespace

std::vector<VerdictRow> compare_variants(const std::vector<CaseRun>& runs, std::string_view a,
                                         std::string_view b) {
  struct Pair {
    const CaseRun* run;
    const Series *a, *b;
  };
  std::vector<Pair> pairs;
  for (const CaseRun& run : runs)
    for (const Series& s : run.series) {
      if (s.variant->name != a) continue;
      if (const Series* other = run.find(b, s.mode)) pairs.push_back({&run, &s, other});
    }
  std::vector<VerdictRow> rows;
  for (const Pair& p : pairs) {
    const double effect = min_effect_of(p.run->noise(p.a->mode));
    rows.push_back({std::string(p.run->op->name), p.run->problem.name, std::string(p.a->mode),
                    std::string(a), std::string(b), median(p.a->us), median(p.b->us), effect,
                    compare_paired(p.a->us, p.b->us, corrected(pairs.size()), effect)});
  }
  return rows;
}

std::vector<VerdictRow> compare_runs(const std::vector<Row>& a, const std::vector<Row>& b) {
  std::vector<std::pair<const Row*, const Row*>> pairs;
  for (const Row& row : a)
    if (const Row* other = same_row(b, row)) pairs.emplace_back(&row, other);
  std::vector<VerdictRow> rows;
  for (const auto& [x, y] : pairs) {
    const double effect = min_effect_of(std::max(x->noise, y->noise));
    rows.push_back(
        {x->op, x->problem, x->mode, x->variant, y->variant, x->us.mid, y->us.mid, effect,
         compare_unpaired(x->samples_us, y->samples_us, corrected(pairs.size()), effect)});
  }
  return rows;
}

Profile profile_of(const std::vector<CaseRun>& runs, const Target& target) {
  size_t n = 0;
  for_each_rival(runs, target, [&](const auto&, const auto&, const auto&) { ++n; });
  std::map<std::pair<std::string, std::string>, const Series*> best;
  for_each_rival(runs, target, [&](const CaseRun& run, const Series& base, const Series& rival) {
    const double effect = min_effect_of(run.noise(base.mode));
    if (compare_paired(base.us, rival.us, corrected(n), effect).speed != Speed::fast) return;
    const Series*& held = best[{std::string(run.op->name), run.key}];
    if (held == nullptr || median(rival.us) < median(held->us)) held = &rival;
  });
  Profile profile;
  for (const auto& [name, series] : best)
    profile.add(name.first, name.second, std::string(series->variant->name));
  return profile;
}

std::string verdict_header() {
  return fmt::format("{:<10} {:<32} {:<6} {:<20} {:<20} {:>9} {:>9} {:>8} {:>20} {:>8} {}\n", "op",
                     "case", "mode", "A", "B", "A us", "B us", "B/A %", "interval %", "least %",
                     "B is");
}

std::string verdict_line(const VerdictRow& row) {
  const Interval& ratio = row.comparison.log_ratio;
  const std::string interval =
      ratio.finite() ? fmt::format("[{:+.1f}, {:+.1f}]", percent_of(ratio.lo), percent_of(ratio.hi))
                     : "[too few samples]";
  return fmt::format("{:<10} {:<32} {:<6} {:<20} {:<20} {:>9} {:>9} {:>+8.1f} {:>20} {:>8.1f} {}\n",
                     row.op, row.problem, row.mode, row.a, row.b, short_number(row.us_a),
                     short_number(row.us_b), percent_of(ratio.mid), interval, 100 * row.min_effect,
                     name_of(row.comparison.speed));
}

}  // namespace millrace::lab
