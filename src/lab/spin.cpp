#include "lab/spin.h"

#include <fmt/format.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "lab/spin_args.h"
#ifdef MILLRACE_CUDA
#include "kernels/device.h"
#endif

namespace millrace::lab {
namespace {

using spin::Args;

// The counter's rate by the monotonic clock: the look with the least time between the two readings
// of the clock around a reading of the counter is the one that nothing interrupted.
struct Look {
  double ns = 0, ticks = 0, width_ns = INFINITY;
};

Look look() {
  Look best;
  for (int i = 0; i < 1000; ++i) {
    const int64_t before = now_ns();
    const auto ticks = static_cast<double>(__rdtsc());
    const int64_t after = now_ns();
    const auto width = static_cast<double>(after - before);
    if (width < best.width_ns) best = {static_cast<double>(before) + width / 2, ticks, width};
  }
  return best;
}

double measure_ticks_per_us() {
  const Look first = look();
  while (static_cast<double>(now_ns()) < first.ns + 5e7) {
  }
  const Look second = look();
  return 1e3 * (second.ticks - first.ticks) / (second.ns - first.ns);
}

double ticks_per_us() {
  static const double value = measure_ticks_per_us();
  return value;
}

void copy(const Args& a, const Exec& exec) {
  const Share mine = exec.share(a.n);
  for (int64_t i = mine.begin; i < mine.end; ++i) a.y[i] = a.x[i];
}

// So many thousandths of kSpinUs, on every lane; all else, the looks at the counter too, is in the
// empty one (of 0) as well.
template <int kThousandths>
Status run_spin(const void* args, Exec& exec) {
  copy(*static_cast<const Args*>(args), exec);
  const uint64_t start = __rdtsc();
  const auto ticks = static_cast<uint64_t>(ticks_per_us() * kSpinUs * 1e-3 * kThousandths);
  while (__rdtsc() - start < ticks) {
  }
  return {};
}

Status run_copy(const void* args, Exec& exec) {
  copy(*static_cast<const Args*>(args), exec);
  return {};
}

constexpr int kWhole = 1000, kDouble = 2000, kLonger = 1000 + static_cast<int>(1000 * kPlanted);
constexpr std::string_view kClass = "lab.spin", kDeviceClass = "lab.spin.cuda";

std::span<const Variant> variants() {
  static constexpr std::array kVariants = {
#ifdef MILLRACE_CUDA
      Variant{.name = "spin",
              .isa = Isa::sm80,
              .numerics = kDeviceClass,
              .run = erase_launch<Args, spin::launch_spin<kWhole>>},
      Variant{.name = "longer",
              .isa = Isa::sm80,
              .numerics = kDeviceClass,
              .run = erase_launch<Args, spin::launch_spin<kLonger>>},
      Variant{.name = "double",
              .isa = Isa::sm80,
              .numerics = kDeviceClass,
              .run = erase_launch<Args, spin::launch_spin<kDouble>>},
      Variant{.name = "empty",
              .isa = Isa::sm80,
              .numerics = kDeviceClass,
              .run = erase_launch<Args, spin::launch_spin<0>>},
#endif
      Variant{.name = "spin", .numerics = kClass, .run = run_spin<kWhole>},
      Variant{.name = "longer", .numerics = kClass, .run = run_spin<kLonger>},
      Variant{.name = "double", .numerics = kClass, .run = run_spin<kDouble>},
      Variant{.name = "empty", .numerics = kClass, .run = run_spin<0>},
      Variant{.name = "reference", .numerics = kReference, .run = run_copy},
  };
  return kVariants;
}

// As many multiply-adds are claimed as keep a pass over the ring short: nothing is held against
// this op's floor.
Case make_case() {
  constexpr int64_t kElems = 64;
  Case c;
  c.name = "10us";
  c.ports = {{.name = "x", .elems = kElems, .fill = fill_normal(DType::f32, kElems)},
             {.name = "y", .elems = kElems, .role = Role::out}};
  c.bind = [](std::span<void* const> p, ArgsBox& box) {
    put_args(box, Args{static_cast<const float*>(p[0]), static_cast<float*>(p[1]), kElems});
  };
  c.floor = {.read_bytes = 4.0 * kElems, .write_bytes = 4.0 * kElems, .f32_macs = 4e7};
  c.tolerance = {.exact = true};
  return c;
}

const Op kSpin = {.name = "spin",
                  .variants = variants,
                  .cases = [] { return std::vector<Case>{make_case()}; },
                  .validate = [](const void*) { return Status(); },
                  .key = [](const void*) { return std::string("spin"); }};

// In the order of their samples.
constexpr std::array<std::string_view, 4> kMounted = {"spin", "longer", "empty", "double"};

Result<std::vector<const Variant*>> variants_on(const Target& target) {
  std::vector<const Variant*> out;
  for (const std::string_view name : kMounted)
    for (const Variant& v : variants())
      if (v.name == name && v.numerics != kReference && target.has(v)) {
        out.push_back(&v);
        break;
      }
  if (out.size() != kMounted.size())
    return error(Code::unavailable, "{} has no variant that spins", target.device());
  return out;
}

std::vector<double> less(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back(a[i] - b[i]);
  return out;
}

std::string_view warm_mode(const Target& target) {
  return target.modes().back();  // cold ones come first
}

// All samples so far; a try may need several calls of time_mode.
void append(SpinReport& report, const ModeRun& run) {
  const auto add = [](std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  add(report.spin_us, run.us[0]);
  add(report.longer_us, run.us[1]);
  add(report.edge_us, run.us[2]);
  add(report.double_us, run.us[3]);
  add(report.twin_us, run.us[4]);
}

void judge_planted(SpinReport& report) {
  const auto spin = less(report.spin_us, report.edge_us),
             twin = less(report.twin_us, report.edge_us);
  report.noise = noise_of(spin, twin);
  report.planted = compare_paired(spin, less(report.longer_us, report.edge_us), 0.05,
                                  min_effect_of(report.noise));
}

}  // namespace

Interval SpinReport::net_us() const {
  return median_interval(less(spin_us, edge_us));
}

Interval SpinReport::difference_us() const {
  return median_interval(less(double_us, spin_us));
}

Result<SpinReport> measure_spin(Target& target, double seconds, const Watch& watch) {
  MILLRACE_ASSIGN(const auto mounted, variants_on(target));
  const Case problem = make_case();
  BenchOptions options = quick_options();
  options.seconds = 1;
  options.min_rounds = 11;
  options.mount.sample_seconds = 8e-4;  // short: few samples are those that another process cut up
  MILLRACE_ASSIGN(const auto rig, target.mount(kSpin, problem, mounted, options.mount));
  SpinReport report{.mode = std::string(warm_mode(target))};
  const int64_t start_ns = now_ns();
  do {
    const Watch part{watch.stop, [&](double, std::string_view what) {
                       watch.progress(report.seconds / seconds, what);
                     }};
    MILLRACE_ASSIGN(const ModeRun run,
                    time_mode(target, Floor{}, *rig, mounted.size(), report.mode, options, part));
    append(report, run);
    report.seconds = static_cast<double>(now_ns() - start_ns) * 1e-9;
    if (!run.complete) return error(Code::cancelled, "interrupted; nothing was stored");
    judge_planted(report);
  } while (report.planted.speed != Speed::slow && report.seconds < seconds);
  return report;
}

std::vector<Metric> metrics_of(const SpinReport& report, int n_lanes) {
  std::vector<Metric> out;
  const auto add = [&](const char* variant, const char* metric, std::vector<double> samples) {
    out.push_back(metric_of({"op", "spin", "10us", variant, report.mode, n_lanes}, metric, "us",
                            "lower", std::move(samples)));
  };
  add("spin", "time", report.spin_us);
  out.back().twin = report.twin_us;
  out.back().noise = report.noise;
  add("longer", "time", report.longer_us);
  add("empty", "time", report.edge_us);
  add("double", "time", report.double_us);
  add("spin", "time_less_edge", less(report.spin_us, report.edge_us));
  add("longer", "time_less_edge", less(report.longer_us, report.edge_us));
  return out;
}

void TwinReport::count(const Comparison& comparison) {
  ++n_tries;
  log_ratios.push_back(comparison.log_ratio.mid);
  switch (comparison.speed) {
    case Speed::fast:
      ++n_fast;
      return;
    case Speed::slow:
      ++n_slow;
      return;
    case Speed::same:
      ++n_same;
      return;
    case Speed::ambiguous:
      ++n_ambiguous;
  }
}

Result<TwinReport> compare_twins(Target& target, const PlanItem& item, int n_tries,
                                 const BenchOptions& options, const Watch& watch) {
  const std::vector<const Variant*> both = {item.variants[0], item.variants[0]};
  MILLRACE_ASSIGN(const auto rig, target.mount(*item.op, item.problem, both, options.mount));
  TwinReport report{.op = std::string(item.op->name),
                    .problem = item.problem.name,
                    .variant = std::string(item.variants[0]->name),
                    .mode = std::string(target.modes().front())};
  const Watch quiet{watch.stop, [](double, std::string_view) {}};
  for (int i = 0; i < n_tries; ++i) {
    watch.progress(i / static_cast<double>(n_tries), fmt::format("{} called", report.n_called()));
    MILLRACE_ASSIGN(const ModeRun run, time_mode(target, item.problem.floor, *rig, both.size(),
                                                 report.mode, options, quiet));
    if (!run.complete) break;
    const double effect = min_effect_of(noise_of(run.us[0], run.us[2]));
    report.count(compare_paired(run.us[0], run.us[1], 0.05, effect));
  }
  return report;
}

std::vector<Metric> metrics_of(const TwinReport& report, int n_lanes) {
  const Subject subject{"op", report.op, report.problem, report.variant, report.mode, n_lanes};
  const auto of = [&](const char* name, const char* better, double value) {
    return metric_of(subject, name, "tries", better, {value});
  };
  return {of("twin_tries", "higher", report.n_tries), of("twin_called", "lower", report.n_called()),
          of("twin_same", "higher", report.n_same),
          of("twin_ambiguous", "lower", report.n_ambiguous)};
}

}  // namespace millrace::lab
