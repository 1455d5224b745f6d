// A row of a bench report: one variant of one case in one mode, with what it costs, what physics
// asks, and which share of the floor that is. Where the ceilings were probed in every round, shares
// are medians over the rounds of what the round's ceilings ask: on a shared host both sides slow
// down together.
#pragma once

#include <string>
#include <vector>

#include "lab/bench.h"
#include "lab/stats.h"
#include "lab/target.h"

namespace millrace::lab {

// The least time a call can take under the measured ceilings: its bytes at the read bandwidth or
// its multiply-adds at the best rate of their type, whichever is longer.
struct FloorTime {
  double us = 0;           // 0: no ceiling to hold it against
  std::string_view bound;  // "bytes", "i8", "f32", "bf16", or empty
};

// reads_memory: false for a warm case that fits the cache, which no memory bandwidth bounds.
FloorTime floor_time(const Floor& floor, const Roof& roof, bool reads_memory);

struct Row {
  std::string op, problem, key, variant, numerics, layout, isa, mode;
  int n_lanes = 1;
  Interval us;                              // of the median, 95 %
  std::vector<double> samples_us, twin_us;  // the twin's on the first variant's row only
  std::vector<double> sm_mhz;               // a GPU's clock in each sample
  // Of a GPU, by round, likewise on the first variant's row only: all variants share a round.
  std::vector<double> power_w, clock_reasons;  // the latter as NVML's bits
  double bytes = 0, macs = 0;                  // the floor's
  double gbps = 0, gflops = 0;
  double floor_us = 0;       // under the best ceilings of the session
  double floor_percent = 0;  // of the rounds' own ceilings, if `probed`
  double isa_percent = 0;    // of its own ISA's rate, likewise, where multiply-adds bound it
  bool probed = false;
  std::string bound;
  double noise = 0;  // A/A, as a log-ratio
  MountInfo mount;
  std::string witness;  // whose bits they are; empty: the tolerance alone decided
};

std::vector<Row> rows_of(const CaseRun& run, const Target& target, const Roof& roof);

// A cold or compute-bound row that beats its floor by more than the noise: the ceiling is too low.
bool beats_floor(const Row& row);

}  // namespace millrace::lab
