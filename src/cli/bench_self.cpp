#include "cli/bench_self.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/progress.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "lab/spin.h"

namespace millrace::cli {
namespace {

constexpr double kSpinSeconds = 120;  // a planted difference must be called by then
constexpr double kMostError = 0.01;   // of what the spin reads as
constexpr double kMostCalled = 0.01;  // of the tries of a variant against itself

double percent_of(double log_ratio) {
  return 100 * std::expm1(log_ratio);
}

// Stored, or said why not.
bool record(const BenchSelfOptions& options, const Machine& machine,
            const std::vector<lab::Metric>& metrics, Recorder& recorder) {
  const Status begun = recorder.begin(options.recording, "op", options.device, machine);
  if (!begun.ok()) {
    fmt::print(stderr, "millrace: the run was not stored: {}\n", begun.message());
    return false;
  }
  recorder.add_metrics(metrics);
  recorder.end("done");
  return recorder.status().ok();
}

bool is_called(const lab::SpinReport& report) {
  return report.planted.speed == lab::Speed::slow;
}

void print_spin(const lab::SpinReport& report) {
  const lab::Interval net = report.net_us();
  fmt::print("{:<10} {:>9} {:>12} {:>9} {:>18} {:>8}\n", "spins", "reads us", "launch edge",
             "net us", "95 %", "error %");
  fmt::print("{:<10} {:>9.3f} {:>12.3f} {:>9.3f} {:>18} {:>+8.2f}\n",
             fmt::format("{} us", lab::kSpinUs), lab::median(report.spin_us),
             lab::median(report.edge_us), net.mid, fmt::format("[{:.3f}, {:.3f}]", net.lo, net.hi),
             100 * report.error());
  fmt::print(
      "\nthe launch edge is an empty kernel in the same {} rounds ({}), taken off round by round\n",
      report.spin_us.size(), report.mode);
  const lab::Interval more = report.difference_us();
  fmt::print("without an edge: 20 us of spinning read {:.3f} us [{:.3f}, {:.3f}] more than 10\n",
             more.mid, more.lo, more.hi);
  const lab::Interval& ratio = report.planted.log_ratio;
  fmt::print("a planted {:.0f} %: {:+.2f} % [{:+.2f}, {:+.2f}], {} after {:.1f} s (A/A {:.2f} %)\n",
             100 * lab::kPlanted, percent_of(ratio.mid), percent_of(ratio.lo), percent_of(ratio.hi),
             is_called(report) ? "called SLOW" : "not called", report.seconds, 100 * report.noise);
}

nlohmann::json to_json(const lab::SpinReport& report, int64_t run) {
  const lab::Interval net = report.net_us(), ratio = report.planted.log_ratio,
                      more = report.difference_us();
  return {{"run", run},
          {"mode", report.mode},
          {"spin_us", lab::kSpinUs},
          {"read_us", lab::median(report.spin_us)},
          {"edge_us", lab::median(report.edge_us)},
          {"net_us", {net.lo, net.mid, net.hi}},
          {"difference_us", {more.lo, more.mid, more.hi}},
          {"error", report.error()},
          {"rounds", report.spin_us.size()},
          {"planted", lab::kPlanted},
          {"planted_verdict", lab::name_of(report.planted.speed)},
          {"planted_log_ratio", {ratio.lo, ratio.mid, ratio.hi}},
          {"planted_seconds", report.seconds},
          {"noise", report.noise}};
}

void print_twins(const lab::TwinReport& report) {
  fmt::print(
      "{} {} {} {}, compared with itself {} times: a difference was called {} times ({} FAST, {} "
      "SLOW),\nSAME {}, AMBIGUOUS {}\n",
      report.op, report.problem, report.variant, report.mode, report.n_tries, report.n_called(),
      report.n_fast, report.n_slow, report.n_same, report.n_ambiguous);
}

nlohmann::json to_json(const lab::TwinReport& report, int64_t run) {
  return {{"run", run},
          {"op", report.op},
          {"case", report.problem},
          {"variant", report.variant},
          {"mode", report.mode},
          {"tries", report.n_tries},
          {"called", report.n_called()},
          {"fast", report.n_fast},
          {"slow", report.n_slow},
          {"same", report.n_same},
          {"ambiguous", report.n_ambiguous}};
}

// What both commands do around their measurement.
template <class Measure, class Print>
int run(const BenchSelfOptions& options, const Measure& measure, const Print& print) {
  const Machine machine = find_machine();
  auto target = lab::make_target(options.device, machine, options.threads);
  if (!target.ok()) return fail(target.status());
  Progress progress("bench");
  const lab::Watch watch{catch_interrupts(), [&](double share, std::string_view what) {
                           if (!options.json) progress.at(share, what);
                         }};
  auto report = measure(**target, watch);
  progress.clear();
  if (!report.ok()) return fail(report.status());
  Recorder recorder;
  const bool stored =
      record(options, machine, lab::metrics_of(*report, (*target)->n_lanes()), recorder);
  const bool good = print(*report, recorder.id());
  return recorder.report(!options.json) && stored && good ? 0 : kFailed;
}

}  // namespace

int bench_spin(const BenchSelfOptions& options) {
  const double seconds = options.seconds > 0 ? options.seconds : kSpinSeconds;
  return run(
      options,
      [&](lab::Target& target, const lab::Watch& watch) {
        return lab::measure_spin(target, seconds, watch);
      },
      [&](const lab::SpinReport& report, int64_t id) {
        if (options.json)
          print_json(to_json(report, id));
        else
          print_spin(report);
        return std::fabs(report.error()) <= kMostError && is_called(report);
      });
}

int bench_twins(const BenchSelfOptions& options, const lab::BenchFilter& filter, int n_tries) {
  lab::BenchOptions how = lab::quick_options();
  how.seconds = options.seconds > 0 ? options.seconds : 0.1;
  how.min_rounds = lab::BenchOptions{}.min_rounds;
  return run(
      options,
      [&](lab::Target& target, const lab::Watch& watch) -> Result<lab::TwinReport> {
        MILLRACE_ASSIGN(const auto plan, lab::plan_bench(target, filter));
        return lab::compare_twins(target, plan.front(), n_tries, how, watch);
      },
      [&](const lab::TwinReport& report, int64_t id) {
        if (options.json)
          print_json(to_json(report, id));
        else
          print_twins(report);
        return report.n_called() <= kMostCalled * report.n_tries;
      });
}

}  // namespace millrace::cli
