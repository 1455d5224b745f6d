// The state of NVIDIA GPUs, from the driver's management library (NVML). The library is opened at
// run time, so this needs no CUDA toolkit to build and no driver to start: where there is none,
// open() says why. A value that a GPU or a driver does not tell is absent. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace millrace {

// Why a GPU's clocks are where they are: bits as NVML has them.
enum ClockReason : uint64_t {
  kReasonIdle = 0x1,
  kReasonAppClocks = 0x2,
  kReasonPowerCap = 0x4,
  kReasonHwSlowdown = 0x8,
  kReasonSyncBoost = 0x10,
  kReasonSwThermal = 0x20,
  kReasonHwThermal = 0x40,
  kReasonPowerBrake = 0x80,
  kReasonDisplay = 0x100,
};
// "idle", "power cap", ...; bits that have no name as hexadecimal digits.
std::vector<std::string> names_of_reasons(uint64_t reasons);

struct GpuState {
  int index = 0;
  std::string name, uuid;
  std::string problem;  // why nothing below is known: the GPU is lost, or has fallen off the bus
  std::optional<int> use_percent, memory_use_percent;  // of the time since the last look
  std::optional<uint64_t> memory_bytes, memory_used_bytes;
  std::optional<int> sm_mhz, max_sm_mhz, memory_mhz, max_memory_mhz;
  std::optional<uint64_t> clock_reasons;
  std::optional<int> temperature_c, slowdown_c, memory_temperature_c;
  std::optional<double> power_w, power_limit_w;
  std::optional<uint64_t> ecc_corrected, ecc_uncorrected;  // since the driver was loaded
  std::optional<int> rows_corrected, rows_uncorrected;     // remapped
  std::optional<bool> remap_pending, remap_failed;
  std::optional<int> pcie_gen, max_pcie_gen, pcie_width, max_pcie_width;
  std::optional<uint64_t> pcie_replays;
  std::optional<int> n_processes;
  std::optional<int> recovery_action;  // 0: none
};

// What changes from one moment of a measurement to the next: two calls of the driver.
struct GpuLoad {
  std::optional<double> power_w;
  std::optional<uint64_t> clock_reasons;
};

struct GpuFault {
  int gpu = -1;      // -1: which one is not known
  uint64_t xid = 0;  // the driver's number of the error
};

class Nvml {
 public:
  // The driver's library unless a test names another. unavailable where there is none.
  static Result<std::unique_ptr<Nvml>> open(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const std::string& driver() const { return driver_; }
  std::vector<GpuState> gpus();
  // The place in gpus() of the one at "0000:18:00.0", as CUDA names it; none: not found.
  std::optional<int> find(const std::string& pci_bus_id) const;
  GpuLoad load(int gpu) const;
  // What the driver reported since the last call; waits for nothing.
  std::vector<GpuFault> faults();

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
  std::string driver_;
  std::vector<void*> devices_;  // null: it could not be opened
  void* events_ = nullptr;
};

}  // namespace millrace
