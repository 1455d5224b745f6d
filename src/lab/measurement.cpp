#include "lab/measurement.h"

#include <algorithm>

#include "base/clock.h"

namespace millrace::lab {
namespace {

constexpr int64_t kLookEveryNs = 30'000'000'000;  // the ceilings, between cases

std::vector<Row> all_rows(const Measurement& result, const Target& target) {
  std::vector<Row> rows;
  for (const CaseRun& run : result.cases)
    for (Row& row : rows_of(run, target, result.roof)) rows.push_back(std::move(row));
  return rows;
}

class Measuring {
 public:
  Measuring(Target& target, const BenchOptions& options, Progress& progress, Listener& listener)
      : target_(target), options_(options), progress_(progress), listener_(listener) {}

  Result<Roof> measure(std::string_view when) {
    MILLRACE_ASSIGN(Roof roof, target_.measure_roof(options_.ceilings));
    result_.roof = max_of(roof, result_.roof);
    looked_ns_ = now_ns();
    progress_.clear();
    listener_.on_ceilings(when, roof);
    return roof;
  }

  // A row over 100 % shows that the ceiling was measured too low.
  Status report(CaseRun run) {
    std::vector<Row> rows = rows_of(run, target_, result_.roof);
    if (std::any_of(rows.begin(), rows.end(), beats_floor)) {
      MILLRACE_ASSIGN(const Roof again, measure("again"));
      result_.raised = true;
      rows = rows_of(run, target_, result_.roof);
    }
    progress_.clear();
    if (!rows.empty()) listener_.on_case(run, rows);
    result_.interrupted = result_.interrupted || !run.complete;
    result_.cases.push_back(std::move(run));
    return {};
  }

  Status run_item(const PlanItem& item, const Watch& watch) {
    auto run = bench_case(target_, item, options_, watch);
    if (run.ok()) return report(*std::move(run));
    result_.failures.push_back(
        fmt::format("{}/{}: {}", item.op->name, item.problem.name, run.status().message()));
    progress_.clear();
    listener_.on_failure(result_.failures.back());
    result_.device_lost = run.status().code() == Code::device_lost;
    return {};
  }

  // A long run outlasts what its ceilings were at its ends.
  Status look_between(bool goes_on) {
    if (!goes_on || result_.device_lost || now_ns() - looked_ns_ < kLookEveryNs) return {};
    return measure("between").status();
  }

  Result<Measurement> run(const std::vector<PlanItem>& plan, const std::atomic<bool>& stop) {
    progress_.at(0, "measuring the ceilings");
    MILLRACE_ASSIGN(result_.before, measure("before"));
    const auto n = static_cast<double>(plan.size());
    for (size_t i = 0; i < plan.size() && !stop && !result_.device_lost; ++i) {
      const std::string name = fmt::format("{}/{}", plan[i].op->name, plan[i].problem.name);
      const Watch watch{stop, [&](double share, std::string_view what) {
                          progress_.at((static_cast<double>(i) + share) / n,
                                       fmt::format("{} {}", name, what));
                        }};
      MILLRACE_TRY(run_item(plan[i], watch));
      MILLRACE_TRY(look_between(i + 1 < plan.size() && !stop));
    }
    result_.interrupted = result_.interrupted || stop;
    result_.after = result_.before;
    if (!stop && !result_.device_lost) {
      MILLRACE_ASSIGN(result_.after, measure("after"));
    }
    result_.rows = all_rows(result_, target_);
    return std::move(result_);
  }

 private:
  Target& target_;
  const BenchOptions& options_;
  Progress& progress_;
  Listener& listener_;
  Measurement result_;
  int64_t looked_ns_ = 0;
};

}  // namespace

// What the hardware does to save itself; a power cap is how a GPU runs under full load.
std::string Measurement::why_slowed() const {
  constexpr uint64_t kSlowed =
      kReasonHwSlowdown | kReasonSwThermal | kReasonHwThermal | kReasonPowerBrake;
  size_t n_rounds = 0, n_slowed = 0;
  uint64_t reasons = 0;
  for (const CaseRun& run : cases)
    for (const Probes& probes : run.probes)
      for (const GpuLoad& load : probes.loads) {
        const uint64_t slowed = load.clock_reasons.value_or(0) & kSlowed;
        reasons |= slowed;
        n_slowed += slowed != 0;
        ++n_rounds;
      }
  if (n_slowed == 0) return "";
  return fmt::format("the GPU slowed itself down in {} of {} rounds ({})", n_slowed, n_rounds,
                     fmt::join(names_of_reasons(reasons), ", "));
}

std::string Measurement::why_not_quiet() const {
  if (const std::string slowed = why_slowed(); !slowed.empty()) return slowed;
  if (spread() > kQuietSpread)
    return fmt::format("not quiet: the ceilings before and after differ by {:.0f} %",
                       100 * spread());
  return before.noise.empty() ? after.noise : before.noise;
}

Result<Measurement> measure_all(Target& target, const std::vector<PlanItem>& plan,
                                const BenchOptions& options, const std::atomic<bool>& stop,
                                Progress& progress, Listener& listener) {
  return Measuring(target, options, progress, listener).run(plan, stop);
}

}  // namespace millrace::lab
