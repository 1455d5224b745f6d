// A measurement of anything: what was measured (a kernel, a model, a chain of products, a server
// under load, a replay), which quantity, its samples and their median. A kernel's row is one of
// them, with facts that only kernels have.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lab/row.h"
#include "lab/stats.h"

namespace millrace::lab {

// The kinds are "op", "model", "chain", "serve" and "replay". Of an op: its name, case, variant,
// mode and lanes. Of a model: its name, what is timed ("decode 128 at 0"), its file's type, device
// and threads.
struct Subject {
  std::string kind = "op", name, problem, variant, mode;
  int n_lanes = 1;

  bool operator==(const Subject&) const = default;
};

struct KernelFacts {
  std::string key, numerics, layout, isa;
  double bytes = 0, macs = 0, gbps = 0, gflops = 0;
  double floor_us = 0, floor_percent = 0, isa_percent = 0;
  std::string bound;
  int64_t ring_entries = 0;
  double ring_bytes = 0;
  int64_t verified_whole = 0, verified_sampled = 0, verified_rows = 0;
  std::string witness = {};  // whose bits they are; empty: the tolerance alone decided
};

struct Metric {
  Subject subject;
  std::string name = "time", unit = "us", better = "lower";  // or "higher"
  Interval value;                                            // of the median, 95 %
  // A/A, as a log-ratio; infinite where no twin was measured.
  double noise = std::numeric_limits<double>::infinity();
  std::vector<double> samples, twin;
  std::optional<KernelFacts> kernel;
};

// One whose median and interval come from its samples.
Metric metric_of(Subject subject, std::string name, std::string unit, std::string better,
                 std::vector<double> samples);
Metric metric_of(const Row& row, const std::string& kind);
Row row_of(const Metric& metric);

}  // namespace millrace::lab
