// The harness held against a clock and against itself. An op whose variants take a time that is
// known, because they spin by the processor's own counter, shows what the harness reads for it; the
// empty variant beside it, in the same rounds, is the launch edge: what a call costs that does
// nothing. And the same variant compared with itself, many times, shows how often a difference is
// called where there is none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lab/bench.h"
#include "lab/metric.h"
#include "lab/stats.h"

namespace millrace::lab {

inline constexpr double kSpinUs = 10, kPlanted = 0.03;  // and one that spins 3 % longer

// What the target's spinning variants read as, from rounds that had all of them.
struct SpinReport {
  std::string mode;
  // By round; longer_us: with kPlanted more; double_us: of twice as long. The twin's is of spin_us.
  std::vector<double> spin_us = {}, longer_us = {}, double_us = {}, edge_us = {}, twin_us = {};
  double noise = 0;
  double seconds = 0;       // until the planted difference was called, or the time was spent
  Comparison planted = {};  // longer against spin, less the edge of the round

  // Less the edge of the same round.
  Interval net_us() const;
  double error() const { return net_us().mid / kSpinUs - 1; }
  // What 10 us more of spinning add. No edge is in it: where it is right and net_us() is not, the
  // edge is what is wrong.
  Interval difference_us() const;
};

// Rounds go on until the planted difference is called, for at most `seconds`.
Result<SpinReport> measure_spin(Target& target, double seconds, const Watch& watch);
std::vector<Metric> metrics_of(const SpinReport& report, int n_lanes);

// One variant under two names, judged as --compare judges, n_tries times.
struct TwinReport {
  std::string op, problem, variant, mode;
  int n_tries = 0, n_fast = 0, n_slow = 0, n_same = 0, n_ambiguous = 0;
  std::vector<double> log_ratios = {};  // the middle of each try's interval

  int n_called() const { return n_fast + n_slow; }
  void count(const Comparison& comparison);
};
Result<TwinReport> compare_twins(Target& target, const PlanItem& item, int n_tries,
                                 const BenchOptions& options, const Watch& watch);
std::vector<Metric> metrics_of(const TwinReport& report, int n_lanes);

}  // namespace millrace::lab
