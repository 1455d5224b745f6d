// This machine's state as the page shows it: host, GPUs and alerts, read when asked. Its history is
// short and in memory. Used by one thread at a time.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "machine/alerts.h"
#include "machine/host_state.h"
#include "machine/nvml.h"

namespace millrace::lab {

class MachineView {
 public:
  // `nvml`: the library's name; tests have one of their own. `database`: whose disk is watched.
  explicit MachineView(std::string database, std::string nvml = "libnvidia-ml.so.1");

  // {"at", "host", "gpus", "gpu_problem", "driver", "alerts"}
  nlohmann::ordered_json now();

 private:
  void look_at_disk(std::vector<Alert>& alerts) const;

  HostWatch host_;
  AlertWatch alerts_;
  std::string database_, nvml_name_;
  std::unique_ptr<Nvml> nvml_;
  std::string gpu_problem_;  // why there is no NVML
  bool has_looked_ = false;  // for a driver
};

}  // namespace millrace::lab
