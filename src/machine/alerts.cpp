#include "machine/alerts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace millrace {
namespace {

using enum Alert::Level;

constexpr int kBusyPercent = 50;  // a GPU under load
constexpr double kMinute_s = 60;
constexpr double kPowerCapShare = 0.1;  // of the last minute under load
constexpr size_t kLoadNeeded = 10;      // readings: a moment is not a minute
constexpr int kHotMargin_c = 5;
constexpr int kHotMemory_c = 95;    // HBM is specified to 95 to 105 degrees
constexpr double kSlowClock = 0.9;  // of this GPU's own median under load
constexpr size_t kClocksKept = 600, kClocksNeeded = 30;
constexpr double kLittleMemory = 0.05;
constexpr double kMuchStolen = 0.02;
constexpr size_t kMostXids = 16;

// Errors after which a GPU needs a reset or a repair: NVIDIA's health catalogue.
constexpr std::pair<uint64_t, const char*> kGraveXids[] = {
    {46, "the GPU stopped processing"},
    {48, "double-bit ECC error"},
    {63, "a memory row is to be remapped"},
    {64, "remapping a memory row failed"},
    {74, "NVLink error"},
    {79, "the GPU fell off the bus"},
    {95, "uncontained ECC error"},
    {119, "the GPU's system processor timed out"},
    {154, "the GPU asks for recovery"}};
// Those that a kernel under test causes by itself: a wrong address, a hang, an exit.
constexpr uint64_t kProgramXids[] = {8, 13, 31, 43, 45, 94};

constexpr const char* kRecovery[] = {"none", "reset the GPU", "reboot the machine",
                                     "drain peer-to-peer traffic", "drain and reset the GPU"};

// Replays a minute that a link of bit error rate 1e-12 may have: 1e-12 x lane rate x lanes x 60 s.
double replays_allowed(int gen, int width) {
  constexpr double kLaneGbps[] = {0, 2.5, 5, 8, 16, 32, 64};
  const size_t i = static_cast<size_t>(std::clamp(gen, 1, 6));
  return 1e-12 * kLaneGbps[i] * 1e9 * width * 60;
}

template <class T>
void forget_older(std::vector<std::pair<double, T>>& seen, double than_s) {
  std::erase_if(seen, [&](const auto& one) { return one.first < than_s; });
}

int median_of(std::vector<int> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void look_at_host(const HostState& host, std::vector<Alert>& out) {
  if (host.memory_bytes > 0 && static_cast<double>(host.memory_available_bytes) <
                                   kLittleMemory * static_cast<double>(host.memory_bytes))
    out.push_back(
        {warning, -1, "memory",
         fmt::format("only {} MiB of memory available", host.memory_available_bytes >> 20),
         "stop other programs: a measurement beside swapping says nothing"});
  if (host.stolen > kMuchStolen)
    out.push_back({warning, -1, "stolen",
                   fmt::format("the hypervisor takes {:.0f} % of the CPUs", 100 * host.stolen),
                   "measure when the host is quieter, and compare within one run only"});
  if (host.n_throttled > 0)
    out.push_back(
        {warning, -1, "throttle",
         fmt::format("the CPUs were throttled {} times since the last look", host.n_throttled),
         "check the control group's CPU quota and the cooling"});
}

void look_at_recovery(const GpuState& gpu, std::vector<Alert>& out) {
  const int action = gpu.recovery_action.value_or(0);
  if (action == 0) return;
  const bool is_known = action > 0 && action < static_cast<int>(std::size(kRecovery));
  out.push_back({critical, gpu.index, "recovery",
                 fmt::format("the driver asks to {}",
                             is_known ? kRecovery[action] : fmt::format("do action {}", action)),
                 "stop what runs on it and do so: what it computes until then is doubtful"});
}

void look_at_xids(int gpu, const std::vector<uint64_t>& xids, std::vector<Alert>& out) {
  for (const uint64_t xid : xids) {
    const auto grave = std::find_if(std::begin(kGraveXids), std::end(kGraveXids),
                                    [&](const auto& one) { return one.first == xid; });
    if (grave != std::end(kGraveXids)) {
      out.push_back({critical, gpu, "xid", fmt::format("Xid {}: {}", xid, grave->second),
                     "drain the GPU and reset it; see dmesg"});
      continue;
    }
    const bool is_program =
        std::find(std::begin(kProgramXids), std::end(kProgramXids), xid) != std::end(kProgramXids);
    out.push_back({is_program ? info : warning, gpu, "xid", fmt::format("Xid {}", xid),
                   is_program ? "usually the fault of the program that ran: see dmesg which one"
                              : "see dmesg and NVIDIA's list of Xid errors"});
  }
}

}  // namespace

std::string_view name_of(Alert::Level level) {
  switch (level) {
    case info:
      return "info";
    case warning:
      return "warning";
    case critical:
      return "critical";
  }
  return "unknown";
}

void AlertWatch::look_at_memory(const GpuState& gpu, Past& past, std::vector<Alert>& out) {
  if (gpu.ecc_uncorrected) {
    if (past.has_ecc && *gpu.ecc_uncorrected > past.ecc_uncorrected)
      past.ecc_new += *gpu.ecc_uncorrected - past.ecc_uncorrected;
    past.ecc_uncorrected = *gpu.ecc_uncorrected;
    past.has_ecc = true;
  }
  if (past.ecc_new > 0)
    out.push_back({critical, gpu.index, "ecc",
                   fmt::format("{} new uncorrectable memory errors", past.ecc_new),
                   "discard what was measured since, and reset the GPU"});
  if (gpu.remap_failed.value_or(false))
    out.push_back(
        {critical, gpu.index, "remap", "remapping a memory row failed", "the GPU needs a repair"});
  else if (gpu.remap_pending.value_or(false))
    out.push_back(
        {critical, gpu.index, "remap", "a memory row waits to be remapped", "reset the GPU"});
}

void AlertWatch::look_at_speed(const GpuState& gpu, Past& past, double at_s,
                               std::vector<Alert>& out) {
  const bool is_busy = gpu.use_percent.value_or(0) >= kBusyPercent;
  const uint64_t reasons = gpu.clock_reasons.value_or(0);
  const uint64_t slowing = reasons & (kReasonHwSlowdown | kReasonHwThermal | kReasonPowerBrake);
  if (slowing != 0)
    out.push_back(
        {warning, gpu.index, "throttle",
         fmt::format("clocks are held down: {}", fmt::join(names_of_reasons(slowing), ", ")),
         "samples timed now are invalid; check cooling and power"});
  forget_older(past.power_cap, at_s - kMinute_s);
  if (is_busy) past.power_cap.emplace_back(at_s, (reasons & kReasonPowerCap) != 0);
  const auto n_capped = std::count_if(past.power_cap.begin(), past.power_cap.end(),
                                      [](const auto& one) { return one.second; });
  const double share = past.power_cap.empty() ? 0
                                              : static_cast<double>(n_capped) /
                                                    static_cast<double>(past.power_cap.size());
  if (past.power_cap.size() >= kLoadNeeded && share > kPowerCapShare)
    out.push_back(
        {warning, gpu.index, "power",
         fmt::format("at its power cap for {:.0f} % of the last minute under load", 100 * share),
         "note it beside what was measured, or raise the limit (nvidia-smi -pl)"});
  if (gpu.temperature_c && gpu.slowdown_c && *gpu.slowdown_c > 0 &&
      *gpu.temperature_c >= *gpu.slowdown_c - kHotMargin_c)
    out.push_back(
        {warning, gpu.index, "heat",
         fmt::format("{} degrees; it slows down at {}", *gpu.temperature_c, *gpu.slowdown_c),
         "check the cooling"});
  if (gpu.memory_temperature_c.value_or(0) >= kHotMemory_c)
    out.push_back({warning, gpu.index, "heat",
                   fmt::format("memory at {} degrees", *gpu.memory_temperature_c),
                   "check the cooling"});
  if (!is_busy || !gpu.sm_mhz) return;
  if (past.busy_mhz.size() >= kClocksNeeded) {
    const int usual = median_of(past.busy_mhz);
    if (*gpu.sm_mhz < kSlowClock * usual)
      out.push_back(
          {warning, gpu.index, "clock",
           fmt::format("SM clock {} MHz under load; its median was {}", *gpu.sm_mhz, usual),
           "samples timed now are slower than usual: see the clock reasons"});
  }
  past.busy_mhz.push_back(*gpu.sm_mhz);
  if (past.busy_mhz.size() > kClocksKept) past.busy_mhz.erase(past.busy_mhz.begin());
}

void AlertWatch::look_at_link(const GpuState& gpu, Past& past, double at_s,
                              std::vector<Alert>& out) {
  const bool is_busy = gpu.use_percent.value_or(0) >= kBusyPercent;
  const bool is_slow = gpu.pcie_gen.value_or(0) < gpu.max_pcie_gen.value_or(0);
  const bool is_narrow = gpu.pcie_width.value_or(0) < gpu.max_pcie_width.value_or(0);
  if (is_busy && gpu.pcie_gen && gpu.pcie_width && (is_slow || is_narrow))
    out.push_back(
        {warning, gpu.index, "link",
         fmt::format("PCIe link at generation {} x{} under load; it can do {} x{}", *gpu.pcie_gen,
                     *gpu.pcie_width, gpu.max_pcie_gen.value_or(0), gpu.max_pcie_width.value_or(0)),
         "reseat the card or check the riser"});
  if (!gpu.pcie_replays) return;
  forget_older(past.replays, at_s - kMinute_s);
  past.replays.emplace_back(at_s, *gpu.pcie_replays);
  const uint64_t first = past.replays.front().second;
  const uint64_t n_new = *gpu.pcie_replays - std::min(first, *gpu.pcie_replays);
  if (static_cast<double>(n_new) >
      replays_allowed(gpu.max_pcie_gen.value_or(3), gpu.max_pcie_width.value_or(16)))
    out.push_back({warning, gpu.index, "link",
                   fmt::format("{} PCIe replays within a minute", n_new),
                   "reseat the card or check the riser"});
}

void AlertWatch::look_at_gpu(const GpuState& gpu, double at_s, std::vector<Alert>& out) {
  Past& past = past_[gpu.index];
  if (!gpu.problem.empty()) {
    out.push_back({critical, gpu.index, "lost",
                   fmt::format("{} is lost: {}",
                               past.name.empty() ? std::string("the GPU") : past.name, gpu.problem),
                   "reset the GPU or reboot; see dmesg"});
    return;
  }
  past.was_seen = true;
  past.name = gpu.name;
  look_at_recovery(gpu, out);
  look_at_memory(gpu, past, out);
  look_at_speed(gpu, past, at_s, out);
  look_at_link(gpu, past, at_s, out);
}

std::vector<Alert> AlertWatch::look(const HostState& host, const std::vector<GpuState>& gpus,
                                    const std::vector<GpuFault>& faults, double at_s) {
  std::vector<Alert> out;
  for (const GpuFault& fault : faults) {
    std::vector<uint64_t>& xids = past_[fault.gpu].xids;
    if (xids.size() < kMostXids && std::find(xids.begin(), xids.end(), fault.xid) == xids.end())
      xids.push_back(fault.xid);
  }
  look_at_host(host, out);
  for (const GpuState& gpu : gpus) look_at_gpu(gpu, at_s, out);
  for (auto& [index, past] : past_) {
    look_at_xids(index, past.xids, out);
    const bool is_here = std::any_of(gpus.begin(), gpus.end(),
                                     [&, i = index](const GpuState& g) { return g.index == i; });
    if (past.was_seen && !is_here)
      out.push_back(
          {critical, index, "lost", past.name + " is gone", "reset the GPU or reboot; see dmesg"});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Alert& a, const Alert& b) { return a.level > b.level; });
  return out;
}

}  // namespace millrace
