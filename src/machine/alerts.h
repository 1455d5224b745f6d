// What an operator or an experiment must know about the machine's state: what is broken (critical),
// what makes a measurement doubtful (warning). Rules and their reasons are in alerts.cpp. Some of
// them compare with what was seen before, so a watch sees every reading once, in order.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "machine/host_state.h"
#include "machine/nvml.h"

namespace millrace {

struct Alert {
  enum class Level : unsigned char { info, warning, critical };
  Level level = Level::warning;
  int gpu = -1;      // -1: the host
  std::string rule;  // a short name that stays: "ecc", "remap", "throttle"
  std::string what, remedy;
};

std::string_view name_of(Alert::Level level);

class AlertWatch {
 public:
  // `at_s`: a clock that only grows. The gravest first.
  std::vector<Alert> look(const HostState& host, const std::vector<GpuState>& gpus,
                          const std::vector<GpuFault>& faults, double at_s);

 private:
  // What one GPU was like before.
  struct Past {
    std::string name;
    uint64_t ecc_uncorrected = 0, ecc_new = 0;
    bool has_ecc = false, was_seen = false;
    std::vector<std::pair<double, uint64_t>> replays;  // of the last minute
    std::vector<std::pair<double, bool>> power_cap;    // of the last minute, under load
    std::vector<int> busy_mhz;                         // SM clocks under load, the newest last
    std::vector<uint64_t> xids;                        // since this watch began
  };

  void look_at_gpu(const GpuState& gpu, double at_s, std::vector<Alert>& out);
  void look_at_memory(const GpuState& gpu, Past& past, std::vector<Alert>& out);
  void look_at_speed(const GpuState& gpu, Past& past, double at_s, std::vector<Alert>& out);
  void look_at_link(const GpuState& gpu, Past& past, double at_s, std::vector<Alert>& out);

  std::map<int, Past> past_;
};

}  // namespace millrace
