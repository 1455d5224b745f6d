#include "lab/page/machine_view.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"

namespace millrace::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr uintmax_t kLittleDisk = uintmax_t{1} << 30;  // a year of runs at one every two minutes

Json json_of(const HostState& host) {
  Json cpus = Json::array();
  for (const CpuState& cpu : host.cpus)
    cpus.push_back({{"cpu", cpu.cpu}, {"use", cpu.use}, {"mhz", cpu.mhz}});
  return {{"use", host.use},
          {"stolen", host.stolen},
          {"load", {host.load_1, host.load_5, host.load_15}},
          {"memory_bytes", host.memory_bytes},
          {"memory_available_bytes", host.memory_available_bytes},
          {"swap_used_bytes", host.swap_used_bytes},
          {"throttled", host.n_throttled},
          {"temperature_c", host.temperature_c > 0 ? Json(host.temperature_c) : Json()},
          {"cpus", std::move(cpus)}};
}

template <class T>
Json maybe(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json json_of(const GpuState& gpu) {
  return {
      {"index", gpu.index},
      {"name", gpu.name},
      {"problem", gpu.problem},
      {"use_percent", maybe(gpu.use_percent)},
      {"memory_use_percent", maybe(gpu.memory_use_percent)},
      {"memory_bytes", maybe(gpu.memory_bytes)},
      {"memory_used_bytes", maybe(gpu.memory_used_bytes)},
      {"sm_mhz", maybe(gpu.sm_mhz)},
      {"max_sm_mhz", maybe(gpu.max_sm_mhz)},
      {"memory_mhz", maybe(gpu.memory_mhz)},
      {"max_memory_mhz", maybe(gpu.max_memory_mhz)},
      {"clock_reasons", gpu.clock_reasons ? Json(names_of_reasons(*gpu.clock_reasons)) : Json()},
      {"temperature_c", maybe(gpu.temperature_c)},
      {"slowdown_c", maybe(gpu.slowdown_c)},
      {"memory_temperature_c", maybe(gpu.memory_temperature_c)},
      {"power_w", maybe(gpu.power_w)},
      {"power_limit_w", maybe(gpu.power_limit_w)},
      {"ecc_corrected", maybe(gpu.ecc_corrected)},
      {"ecc_uncorrected", maybe(gpu.ecc_uncorrected)},
      {"rows_corrected", maybe(gpu.rows_corrected)},
      {"rows_uncorrected", maybe(gpu.rows_uncorrected)},
      {"remap_pending", maybe(gpu.remap_pending)},
      {"remap_failed", maybe(gpu.remap_failed)},
      {"pcie_gen", maybe(gpu.pcie_gen)},
      {"max_pcie_gen", maybe(gpu.max_pcie_gen)},
      {"pcie_width", maybe(gpu.pcie_width)},
      {"max_pcie_width", maybe(gpu.max_pcie_width)},
      {"pcie_replays", maybe(gpu.pcie_replays)},
      {"processes", maybe(gpu.n_processes)},
      {"recovery_action", maybe(gpu.recovery_action)}};
}

Json json_of(const Alert& alert) {
  return {{"level", name_of(alert.level)},
          {"gpu", alert.gpu < 0 ? Json() : Json(alert.gpu)},
          {"rule", alert.rule},
          {"what", alert.what},
          {"remedy", alert.remedy}};
}

}  // namespace

MachineView::MachineView(std::string database, std::string nvml)
    : host_(HostFiles("/")), database_(std::move(database)), nvml_name_(std::move(nvml)) {}

void MachineView::look_at_disk(std::vector<Alert>& alerts) const {
  std::error_code failure;
  const auto space =
      std::filesystem::space(std::filesystem::path(database_).parent_path(), failure);
  if (failure || space.available >= kLittleDisk) return;
  alerts.push_back({Alert::Level::warning, -1, "disk",
                    fmt::format("{} MiB left on the disk of {}", space.available >> 20, database_),
                    "free some: a run that cannot be stored is lost"});
}

Json MachineView::now() {
  if (!has_looked_) {
    has_looked_ = true;
    auto opened = Nvml::open(nvml_name_);
    if (opened.ok())
      nvml_ = std::move(opened).value();
    else
      gpu_problem_ = opened.status().message();
  }
  const HostState host = host_.now();
  const std::vector<GpuState> gpus = nvml_ ? nvml_->gpus() : std::vector<GpuState>();
  const std::vector<GpuFault> faults = nvml_ ? nvml_->faults() : std::vector<GpuFault>();
  auto alerts = alerts_.look(host, gpus, faults, static_cast<double>(now_ns()) * 1e-9);
  look_at_disk(alerts);
  Json out = {{"at", utc_now()},
              {"host", json_of(host)},
              {"gpus", Json::array()},
              {"gpu_problem", gpu_problem_},
              {"driver", nvml_ ? nvml_->driver() : ""},
              {"alerts", Json::array()}};
  for (const GpuState& gpu : gpus) out["gpus"].push_back(json_of(gpu));
  for (const Alert& alert : alerts) out["alerts"].push_back(json_of(alert));
  return out;
}

}  // namespace millrace::lab
