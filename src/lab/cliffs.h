// Cliffs: where one more row costs a call much more than the rows around it. They are predicted
// from what variants declare (tiles, blocks), from where the choice of a variant changes and from
// the sizes of caches, then measured: every number of rows is one participant of the same rounds,
// and a step counts by what it exceeds the steps beside it, round by round.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "lab/metric.h"
#include "lab/plan.h"
#include "lab/target.h"

namespace millrace::lab {

// From `rows` to rows + 1.
struct RowEdge {
  int64_t rows = 0;
  std::string kind;  // variant, tile, wave, cache
  std::string why;
};

struct CliffOptions {
  std::string op, problem;            // a case whose rows are varied; empty: the first timed one
  std::vector<std::string> variants;  // the only ones to choose from; none: all
  int64_t first = 1, last = 24;       // rows
  std::string mode;                   // empty: the target's first
  double seconds = 8;                 // about, for all of it
  double least_step = 0.05;           // what counts as a cliff, relative
  int min_rounds = 21, max_rounds = 400;
};

struct CliffPoint {
  int64_t rows = 0;
  const Variant* variant = nullptr;
  Case problem;
  std::string key;
};

struct CliffPlan {
  const Op* op = nullptr;
  std::string mode;
  std::vector<CliffPoint> points;  // by rows, without gaps
  std::vector<RowEdge> edges;      // predicted; at most one of a kind and place
};

// What would be measured. An error names what does not exist.
Result<CliffPlan> plan_cliffs(const Target& target, const Machine& machine,
                              const CliffOptions& options);

struct Step {
  int64_t rows = 0;     // to rows + 1
  Interval log_step;    // ln(time of rows + 1 / time of rows)
  Interval log_excess;  // over the steps beside it
  std::string verdict;  // cliff, none, undecided
  std::vector<RowEdge> predicted;
};

struct CliffResult {
  std::vector<Metric> metrics;  // of the points, in order
  std::vector<Step> steps;
  bool complete = true;  // false: stopped by the user
};

Result<CliffResult> measure_cliffs(Target& target, const CliffPlan& plan,
                                   const CliffOptions& options, const std::atomic<bool>& stop,
                                   const std::function<void(double share)>& progress);

// Apart from measuring, for tests: what samples of points say. noise: A/A, as a log-ratio.
std::vector<Step> judge_steps(const std::vector<int64_t>& rows,
                              const std::vector<std::vector<double>>& us, double noise,
                              double least_step);

// "▁▂▂▅▆█": a character a value, from 0 to the largest.
std::string sparkline(const std::vector<double>& values);

}  // namespace millrace::lab
