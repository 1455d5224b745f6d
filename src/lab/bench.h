// Measuring one case: every variant and an A/A twin of the first, one sample each a round, in
// rotating order, until the medians are known well enough or the time is spent. Each round begins
// with the ceilings of that moment. What comes out is all samples, paired by round; rows with units
// and shares of the floor are made in lab/row.h.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lab/plan.h"
#include "lab/stats.h"
#include "lab/target.h"

namespace millrace::lab {

struct BenchOptions {
  double seconds = 2;    // about how long each mode of a case is timed
  double width = 0.005;  // stop early when every median's interval is this narrow
  int min_rounds = 11;   // the sign test needs this many for a family of comparisons
  int max_rounds = 400;
  Effort ceilings = Effort::full;
  MountOptions mount;
};
BenchOptions quick_options();

// One variant of one case in one mode: microseconds a call, one per round.
struct Series {
  const Variant* variant = nullptr;
  std::string_view mode;
  std::vector<double> us;
  std::vector<double> sm_mhz = {};  // of a GPU, likewise; else none
};

// The ceilings found at the beginning of each round of a mode, and the device's load at its end;
// empty where they do not move, where nobody tells.
struct Probes {
  std::string_view mode;
  std::vector<Roof> roofs;
  std::vector<GpuLoad> loads = {};
};

struct CaseRun {
  const Op* op = nullptr;
  Case problem;
  std::string key;
  std::vector<Series> series;  // by mode, then variant
  // Per mode: the twin of the first variant, and what it differs by (log-ratio).
  std::vector<Series> twins;
  std::vector<Probes> probes;  // per mode
  MountInfo mount;
  bool complete = true;  // false: stopped by the user

  double noise(std::string_view mode) const;
  const Series* find(std::string_view variant, std::string_view mode) const;
  Probes probes_of(std::string_view mode) const;  // by round, or none
};

struct Watch {
  const std::atomic<bool>& stop;
  std::function<void(double share, std::string_view what)> progress;
};

// Mounts, verifies and times; where a class has no witness, another variant of it is mounted for
// its bits and not timed. A failed verification is an error: nothing of the case is reported.
Result<CaseRun> bench_case(Target& target, const PlanItem& item, const BenchOptions& options,
                           const Watch& watch);

// The rounds of one mode, on what is mounted: microseconds a call of each of the first n_variants
// and, last, of the twin of the first; [participant][round].
struct ModeRun {
  std::vector<std::vector<double>> us, sm_mhz;
  std::vector<Roof> roofs;     // [round]; empty where ceilings do not move
  std::vector<GpuLoad> loads;  // [round]; empty where nobody tells
  bool complete = true;        // false: stopped by the user
};
Result<ModeRun> time_mode(Target& target, const Floor& floor, Rig& rig, size_t n_variants,
                          std::string_view mode, const BenchOptions& options, const Watch& watch);

}  // namespace millrace::lab
