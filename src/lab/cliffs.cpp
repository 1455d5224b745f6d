#include "lab/cliffs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "base/clock.h"
#include "kernels/pick.h"
#include "kernels/tile_shape.h"
#include "lab/stats.h"

namespace millrace::lab {
namespace {

constexpr int64_t kMostPoints = 64;
constexpr double kAlpha = 0.05;  // for all steps together

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

Result<Case> base_case(const Op& op, const std::string& name,
                       const std::function<bool(const Case&)>& is_taken) {
  std::string known;
  for (Case& problem : op.cases()) {
    if (!problem.with_rows || problem.hostile) continue;
    if (name.empty() ? problem.timed && is_taken(problem) : problem.name == name)
      return std::move(problem);
    if (problem.timed) known += " " + problem.name;
  }
  if (!name.empty())
    return error(Code::not_found, "no case '{}' of {} with rows; some are:{}", name, op.name,
                 known);
  return error(Code::not_found, "{} has no case with rows", op.name);
}

// What a program would pick among those that are let: the first of the table that takes it.
const Variant* choose(const Target& target, const Op& op, const Case& problem,
                      const std::vector<std::string>& among) {
  const ArgsBox args = shape_of(problem);
  for (const Variant& v : op.variants()) {
    const bool let = among.empty() ? v.isa != Isa::generic
                                   : std::find(among.begin(), among.end(), v.name) != among.end();
    if (let && target.has(v) && (v.takes == nullptr || v.takes(args.bytes))) return &v;
  }
  return nullptr;
}

int units_of(const Target& target, const Machine& machine) {
  if (target.device() == "cuda" && !machine.gpus.empty()) return machine.gpus[0].n_sms;
  return target.n_lanes();
}

TileShape tiles_of(const Op& op, const CliffPoint& point, int n_units) {
  return millrace::tiles_of(op, *point.variant, shape_of(point.problem).bytes, n_units);
}

double bytes_of(const CliffPoint& point) {
  const Floor& f = point.problem.floor;
  return f.read_bytes + f.write_bytes;
}

class Predictor {
 public:
  Predictor(const Op& op, const Target& target, const Machine& machine)
      : op_(op),
        machine_(machine),
        n_units_(units_of(target, machine)),
        on_cpu_(target.device() == "cpu"),
        n_lanes_(target.n_lanes()) {}

  std::vector<RowEdge> between(const CliffPoint& a, const CliffPoint& b) const {
    std::vector<RowEdge> out;
    const auto add = [&](const char* kind, std::string why) {
      out.push_back({a.rows, kind, std::move(why)});
    };
    if (a.variant != b.variant)
      add("variant", fmt::format("{} ends, {} begins", a.variant->name, b.variant->name));
    const TileShape x = tiles_of(op_, a, n_units_), y = tiles_of(op_, b, n_units_);
    if (a.variant == b.variant && x.rows > 0 && x.rows != y.rows)
      add("tile", fmt::format("tiles of {} rows end, of {} begin", x.rows, y.rows));
    else if (a.variant == b.variant && x.rows > 1 && a.rows % x.rows == 0)
      add("tile", fmt::format("row {} begins another tile of {}", b.rows, x.rows));
    const int64_t waves_a = waves(x), waves_b = waves(y);
    if (waves_a > 0 && waves_b > waves_a && waves_a <= 4)
      add("wave", fmt::format("{} blocks are {} waves, {} are {}", x.n_blocks, waves_a, y.n_blocks,
                              waves_b));
    for (const auto& [size, name] : caches())
      if (bytes_of(a) <= size && bytes_of(b) > size)
        add("cache",
            fmt::format("what it reads and writes outgrows {} of {:.0f} KB", name, size / 1024));
    return out;
  }

 private:
  int64_t waves(const TileShape& t) const {
    const int64_t slots = static_cast<int64_t>(n_units_) * std::max(1, t.blocks_per_unit);
    return t.n_blocks == 0 ? 0 : ceil_div(t.n_blocks, std::max<int64_t>(1, slots));
  }
  std::vector<std::pair<double, std::string>> caches() const {
    if (!on_cpu_) return {};
    const auto of_lanes = [&](size_t bytes) { return static_cast<double>(bytes) * n_lanes_; };
    return {{of_lanes(machine_.l1d_bytes), "the lanes' L1"},
            {of_lanes(machine_.l2_bytes), "the lanes' L2"},
            {static_cast<double>(machine_.llc_bytes), "the last-level cache"}};
  }

  const Op& op_;
  const Machine& machine_;
  int n_units_;
  bool on_cpu_;
  int n_lanes_;
};

Result<std::string> mode_of(const Target& target, const std::string& wanted) {
  std::string known;
  const auto modes = target.modes();
  for (const std::string_view mode : modes) {
    if (mode == wanted) return wanted;
    known += " " + std::string(mode);
  }
  if (!wanted.empty()) return error(Code::not_found, "no mode '{}'; they are:{}", wanted, known);
  return std::string(modes.front());
}

Status check_variants(const Target& target, const Op& op, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const Variant* v = variant_named(op, name);
    if (v == nullptr)
      return error(Code::not_found, "no variant '{}' of {}; they are {}", name, op.name,
                   variant_names(op));
    if (!target.has(*v))
      return error(Code::unavailable, "variant '{}' needs {}, which this {} lacks", name,
                   name_of(v->isa), target.device());
  }
  return {};
}

KernelFacts facts_of(const CliffPoint& point, double us) {
  const Floor& f = point.problem.floor;
  KernelFacts out{.key = point.key,
                  .numerics = std::string(point.variant->numerics),
                  .layout = std::string(point.variant->layout),
                  .isa = std::string(name_of(point.variant->isa)),
                  .bound = ""};
  out.bytes = f.read_bytes + f.write_bytes;
  out.macs = f.i8_macs + f.f32_macs + f.bf16_macs;
  out.gbps = out.bytes / us * 1e-3;
  out.gflops = 2 * out.macs / us * 1e-3;
  return out;
}

// One round: a sample of every point and of the twin, in an order that turns from round to round.
class Sweep {
 public:
  Sweep(Target& target, const CliffPlan& plan) : target_(target), plan_(plan) {
    us_.resize(plan.points.size() + 1);  // the last is the twin of the middle one
  }

  Status mount() {
    MountOptions how;
    how.sample_seconds = 0.004;
    for (const CliffPoint& point : plan_.points) {
      const std::vector<const Variant*> one = {point.variant};
      MILLRACE_ASSIGN(rigs_.emplace_back(), target_.mount(*plan_.op, point.problem, one, how));
    }
    return {};
  }

  Status round(size_t i) {
    const size_t n = us_.size();
    for (size_t place = 0; place < n; ++place) {
      const size_t p = (place * stride() + i) % n;
      MILLRACE_ASSIGN(const double us, rigs_[p + 1 == n ? middle() : p]->time_us(0, plan_.mode));
      us_[p].push_back(us);
    }
    return {};
  }
  void forget() {
    for (auto& samples : us_) samples.clear();
  }

  double noise() const { return noise_of(us_[middle()], us_.back()); }
  size_t middle() const { return plan_.points.size() / 2; }
  const std::vector<std::vector<double>>& us() const { return us_; }

 private:
  // Neighbours are not always measured one after the other: a stride that shares no factor with n.
  size_t stride() const {
    size_t out = us_.size() / 2 + 1;
    while (std::gcd(out, us_.size()) != 1) ++out;
    return out;
  }

  Target& target_;
  const CliffPlan& plan_;
  std::vector<std::unique_ptr<Rig>> rigs_;
  std::vector<std::vector<double>> us_;  // [participant][round]
};

// By round: what the step at i exceeds the mean of those beside it, as far as they are there.
std::vector<double> excess_of(const std::vector<std::vector<double>>& us, size_t i) {
  const auto step = [&](size_t from, size_t round) {
    return std::log(us[from + 1][round] / us[from][round]);
  };
  const bool before = i > 0, after = i + 2 < us.size();
  std::vector<double> out;
  for (size_t r = 0; r < us[i].size(); ++r) {
    double beside = 0;
    if (before) beside += step(i - 1, r);
    if (after) beside += step(i + 1, r);
    out.push_back(step(i, r) - beside / std::max(1, before + after));
  }
  return out;
}

}  // namespace

Result<CliffPlan> plan_cliffs(const Target& target, const Machine& machine,
                              const CliffOptions& options) {
  CliffPlan out;
  out.op = op_named(options.op);
  if (out.op == nullptr)
    return error(Code::not_found, "no op '{}'; the ops are {}", options.op, op_names());
  if (options.first < 1 || options.last < options.first + 2 ||
      options.last - options.first >= kMostPoints)
    return error(Code::invalid_argument,
                 "rows are FIRST-LAST, 3 to {} of them from 1 on, like 1-24", kMostPoints);
  MILLRACE_TRY(check_variants(target, *out.op, options.variants));
  MILLRACE_ASSIGN(out.mode, mode_of(target, options.mode));
  MILLRACE_ASSIGN(const Case base, base_case(*out.op, options.problem, [&](const Case& problem) {
                    return choose(target, *out.op, problem, options.variants) != nullptr;
                  }));
  for (int64_t rows = options.first; rows <= options.last; ++rows) {
    CliffPoint point;
    point.rows = rows;
    point.problem = base.with_rows(rows);
    point.variant = choose(target, *out.op, point.problem, options.variants);
    if (point.variant == nullptr)
      return error(Code::unsupported, "none of the variants takes {} on this {}",
                   point.problem.name, target.device());
    point.key = out.op->key(shape_of(point.problem).bytes);
    out.points.push_back(std::move(point));
  }
  const Predictor predictor(*out.op, target, machine);
  for (size_t i = 0; i + 1 < out.points.size(); ++i)
    for (RowEdge& edge : predictor.between(out.points[i], out.points[i + 1]))
      out.edges.push_back(std::move(edge));
  return out;
}

std::vector<Step> judge_steps(const std::vector<int64_t>& rows,
                              const std::vector<std::vector<double>>& us, double noise,
                              double least_step) {
  std::vector<Step> out;
  const auto n = static_cast<double>(rows.size() - 1);
  const double least = std::max(std::log1p(least_step), min_effect_of(noise));
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    std::vector<double> steps;
    for (size_t r = 0; r < us[i].size(); ++r) steps.push_back(std::log(us[i + 1][r] / us[i][r]));
    Step step;
    step.rows = rows[i];
    step.log_step = median_interval(steps, kAlpha / n);
    step.log_excess = median_interval(excess_of(us, i), kAlpha / n);
    step.verdict = !step.log_excess.finite()     ? "undecided"
                   : step.log_excess.lo >= least ? "cliff"
                   : step.log_excess.hi < least  ? "none"
                                                 : "undecided";
    out.push_back(std::move(step));
  }
  return out;
}

Result<CliffResult> measure_cliffs(Target& target, const CliffPlan& plan,
                                   const CliffOptions& options, const std::atomic<bool>& stop,
                                   const std::function<void(double)>& progress) {
  Sweep sweep(target, plan);
  progress(0);
  MILLRACE_TRY(sweep.mount());
  MILLRACE_TRY(sweep.round(0));  // wakes clocks and caches; not kept
  sweep.forget();
  const int needed = std::max(options.min_rounds,
                              least_samples(kAlpha / static_cast<double>(plan.points.size())) + 4);
  CliffResult out;
  const int64_t start_ns = now_ns();
  for (int round = 0; round < options.max_rounds; ++round) {
    const double spent = static_cast<double>(now_ns() - start_ns) * 1e-9;
    if (round >= needed && spent >= options.seconds) break;
    if (stop) {
      out.complete = false;
      break;
    }
    progress(std::min(1.0, spent / options.seconds));
    MILLRACE_TRY(sweep.round(static_cast<size_t>(round)));
  }
  if (sweep.us()[0].empty()) return out;
  std::vector<int64_t> rows;
  const double noise = sweep.noise();
  for (size_t i = 0; i < plan.points.size(); ++i) {
    const CliffPoint& point = plan.points[i];
    rows.push_back(point.rows);
    Metric m = metric_of(Subject{"op", std::string(plan.op->name), point.problem.name,
                                 std::string(point.variant->name), plan.mode, target.n_lanes()},
                         "time", "us", "lower", sweep.us()[i]);
    m.noise = noise;
    if (i == sweep.middle()) m.twin = sweep.us().back();
    m.kernel = facts_of(point, m.value.mid);
    out.metrics.push_back(std::move(m));
  }
  auto us = sweep.us();
  us.pop_back();
  out.steps = judge_steps(rows, us, noise, options.least_step);
  for (Step& step : out.steps)
    for (const RowEdge& edge : plan.edges)
      if (edge.rows == step.rows) step.predicted.push_back(edge);
  return out;
}

std::string sparkline(const std::vector<double>& values) {
  constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double most = values.empty() ? 1 : *std::max_element(values.begin(), values.end());
  std::string out;
  for (const double value : values)
    out += kBars[static_cast<size_t>(std::clamp(8 * value / most - 0.5, 0.0, 7.0))];
  return out;
}

}  // namespace millrace::lab
