// bench --spin and bench OP --compare-twin N: the harness held against a clock, and against itself.
#pragma once

#include <string>

#include "cli/recorder.h"
#include "lab/bench.h"

namespace millrace::cli {

struct BenchSelfOptions {
  std::string device = "cpu";
  int threads = 0;
  double seconds = 0;  // 0: the command's own
  bool json = false;
  Recording recording = {};
};

int bench_spin(const BenchSelfOptions& options);

// The first variant of the first case that the filter leaves.
int bench_twins(const BenchSelfOptions& options, const lab::BenchFilter& filter, int n_tries);

}  // namespace millrace::cli
