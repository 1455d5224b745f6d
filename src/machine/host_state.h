// What a host is doing now: how busy its CPUs are, how fast they run, how much memory is left. Read
// from /proc and /sys, a few hundred microseconds for a few CPUs; shares are of the time between
// two readings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "machine/host_files.h"

namespace millrace {

struct CpuState {
  int cpu = 0;
  double use = 0;  // 0 to 1
  double mhz = 0;  // 0 where the kernel does not tell
};

struct HostState {
  std::vector<CpuState> cpus;  // those online, the first kMostCpusShown of them
  double use = 0, stolen = 0;  // 0 to 1, of all CPUs together; stolen by the hypervisor
  double load_1 = 0, load_5 = 0, load_15 = 0;
  size_t memory_bytes = 0, memory_available_bytes = 0;  // inside the control group's limit
  size_t swap_used_bytes = 0;
  size_t n_throttled = 0;    // since the last reading: quota periods that ran out, thermal events
  double temperature_c = 0;  // of the hottest CPU sensor; 0 where there is none
};

inline constexpr size_t kMostCpusShown = 256;

class HostWatch {
 public:
  explicit HostWatch(const HostFiles& host) : host_(host) {}

  // Since the last call; the first one tells what has been since the machine started.
  HostState now();

 private:
  struct Ticks {
    int64_t busy = 0, all = 0, stolen = 0;
  };
  static Ticks parse(const std::string& line);

  HostFiles host_;
  Ticks last_;
  std::vector<Ticks> last_cpus_;
  size_t last_throttled_ = 0;
  bool has_last_ = false;
};

}  // namespace millrace
