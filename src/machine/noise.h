// Whether this machine was left alone while something was measured on it: CPU time taken by others
// and by the hypervisor, throttling, and how far repeated rounds lay apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "machine/host_files.h"

namespace millrace {

struct Noise {
  double others = 0;        // CPUs' worth of time other processes used, of those allowed to us
  double stolen = 0;        // the same, taken by the hypervisor
  size_t n_throttled = 0;   // quota periods that ran out, and thermal events
  double load_average = 0;  // over the last minute, as the system tells it
  double spread = 0;        // of repeated rounds: (median - best) / best; the measurer fills it
};

// "not quiet: ..." with every reason, or empty when nothing speaks against trusting a measurement.
std::string why_not_quiet(const Noise& noise, int n_cpus);

// Counts from its making to stop().
class NoiseWatch {
 public:
  NoiseWatch(const HostFiles& host, std::vector<int> cpus);
  Noise stop() const;

 private:
  struct Counts {
    int64_t wall_ns = 0;
    int64_t own_ns = 0;
    int64_t busy_ticks = 0;
    int64_t stolen_ticks = 0;
    size_t n_throttled = 0;
  };
  Counts count() const;

  HostFiles host_;
  std::vector<int> cpus_;
  Counts begin_;
};

}  // namespace millrace
