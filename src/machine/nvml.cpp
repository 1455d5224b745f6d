#include "machine/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

namespace millrace {
namespace {

// NVML's numbers that are used here (nvml.h; part of its stable ABI).
constexpr int kSuccess = 0, kInsufficientSize = 7, kGpuLost = 15;
constexpr unsigned kClockSm = 1, kClockMemory = 2;
constexpr unsigned kThresholdSlowdown = 1;
constexpr unsigned kCorrected = 0, kUncorrected = 1, kVolatile = 0;
constexpr unsigned kFieldMemoryTemperature = 82, kFieldRecoveryAction = 230;
constexpr uint64_t kEventXid = 0x8;
constexpr unsigned kMostGpus = 64;  // a driver that says more is not believed
constexpr int kMostFaults = 64;     // in one look

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency_us;
  unsigned type;
  int code;
  union {
    double real;
    unsigned whole;
    unsigned long long large;
  } value;
};
static_assert(sizeof(FieldValue) == 40);
struct EventData {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32);

using Device = void*;

template <class F>
void bind(void* library, const char* symbol, F& f) {
  f = reinterpret_cast<F>(dlsym(library, symbol));
}

}  // namespace

// Calls that a library lacks are null: older drivers do not know them all.
struct Nvml::Library {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*device_at)(const char*, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*clock)(Device, unsigned, unsigned*) = nullptr;
  int (*max_clock)(Device, unsigned, unsigned*) = nullptr;
  int (*reasons)(Device, unsigned long long*) = nullptr;
  int (*temperature)(Device, unsigned, unsigned*) = nullptr;
  int (*threshold)(Device, unsigned, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*power_limit)(Device, unsigned*) = nullptr;
  int (*ecc)(Device, unsigned, unsigned, unsigned long long*) = nullptr;
  int (*remapped)(Device, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  int (*pcie_gen)(Device, unsigned*) = nullptr;
  int (*max_pcie_gen)(Device, unsigned*) = nullptr;
  int (*pcie_width)(Device, unsigned*) = nullptr;
  int (*max_pcie_width)(Device, unsigned*) = nullptr;
  int (*pcie_replays)(Device, unsigned*) = nullptr;
  int (*processes)(Device, unsigned*, void*) = nullptr;
  int (*fields)(Device, int, FieldValue*) = nullptr;
  int (*make_events)(void**) = nullptr;
  int (*register_events)(Device, unsigned long long, void*) = nullptr;
  int (*wait)(void*, EventData*, unsigned) = nullptr;
  int (*free_events)(void*) = nullptr;

  explicit Library(void* l) {
    bind(l, "nvmlInit_v2", init);
    bind(l, "nvmlShutdown", shutdown);
    bind(l, "nvmlErrorString", error_text);
    bind(l, "nvmlSystemGetDriverVersion", driver_version);
    bind(l, "nvmlDeviceGetCount_v2", count);
    bind(l, "nvmlDeviceGetHandleByIndex_v2", device);
    bind(l, "nvmlDeviceGetHandleByPciBusId_v2", device_at);
    bind(l, "nvmlDeviceGetName", name);
    bind(l, "nvmlDeviceGetUUID", uuid);
    bind(l, "nvmlDeviceGetUtilizationRates", utilization);
    bind(l, "nvmlDeviceGetMemoryInfo", memory);
    bind(l, "nvmlDeviceGetClockInfo", clock);
    bind(l, "nvmlDeviceGetMaxClockInfo", max_clock);
    bind(l, "nvmlDeviceGetCurrentClocksEventReasons", reasons);
    if (reasons == nullptr) bind(l, "nvmlDeviceGetCurrentClocksThrottleReasons", reasons);
    bind(l, "nvmlDeviceGetTemperature", temperature);
    bind(l, "nvmlDeviceGetTemperatureThreshold", threshold);
    bind(l, "nvmlDeviceGetPowerUsage", power);
    bind(l, "nvmlDeviceGetEnforcedPowerLimit", power_limit);
    bind(l, "nvmlDeviceGetTotalEccErrors", ecc);
    bind(l, "nvmlDeviceGetRemappedRows", remapped);
    bind(l, "nvmlDeviceGetCurrPcieLinkGeneration", pcie_gen);
    bind(l, "nvmlDeviceGetMaxPcieLinkGeneration", max_pcie_gen);
    bind(l, "nvmlDeviceGetCurrPcieLinkWidth", pcie_width);
    bind(l, "nvmlDeviceGetMaxPcieLinkWidth", max_pcie_width);
    bind(l, "nvmlDeviceGetPcieReplayCounter", pcie_replays);
    bind(l, "nvmlDeviceGetComputeRunningProcesses_v3", processes);
    bind(l, "nvmlDeviceGetFieldValues", fields);
    bind(l, "nvmlEventSetCreate", make_events);
    bind(l, "nvmlDeviceRegisterEvents", register_events);
    bind(l, "nvmlEventSetWait_v2", wait);
    bind(l, "nvmlEventSetFree", free_events);
  }

  bool is_whole() const {
    return init != nullptr && shutdown != nullptr && count != nullptr && device != nullptr &&
           name != nullptr;
  }
  std::string text_of(int code) const {
    const char* text = error_text == nullptr ? nullptr : error_text(code);
    return text == nullptr ? fmt::format("error {}", code) : text;
  }

  // What one call gives, or nothing.
  template <class Out, class... A>
  std::optional<Out> whole(int (*call)(Device, A...), Device device, auto... before) const {
    using Pointer = std::tuple_element_t<sizeof...(A) - 1, std::tuple<A...>>;
    std::remove_pointer_t<Pointer> value{};
    if (call == nullptr || call(device, before..., &value) != kSuccess) return std::nullopt;
    return static_cast<Out>(value);
  }
  std::string text(int (*call)(Device, char*, unsigned), Device device) const {
    char out[128] = {};
    if (call == nullptr || call(device, out, sizeof out - 1) != kSuccess) return "";
    return out;
  }
  std::optional<int> field(Device device, unsigned id) const {
    FieldValue value{};
    value.field = id;
    if (fields == nullptr || fields(device, 1, &value) != kSuccess || value.code != kSuccess)
      return std::nullopt;
    return static_cast<int>(value.value.whole);  // both that are asked for are unsigned
  }
  std::optional<int> n_processes(Device device) const {
    if (processes == nullptr) return std::nullopt;
    unsigned n = 0;  // no room: the call says how many there are
    const int code = processes(device, &n, nullptr);
    if (code != kSuccess && code != kInsufficientSize) return std::nullopt;
    return static_cast<int>(n);
  }

  void read_clocks(Device d, GpuState& out) const {
    out.sm_mhz = whole<int>(clock, d, kClockSm);
    out.max_sm_mhz = whole<int>(max_clock, d, kClockSm);
    out.memory_mhz = whole<int>(clock, d, kClockMemory);
    out.max_memory_mhz = whole<int>(max_clock, d, kClockMemory);
    out.clock_reasons = whole<uint64_t>(reasons, d);
  }
  std::optional<double> watts(int (*call)(Device, unsigned*), Device d) const {
    const auto mw = whole<double>(call, d);
    return mw ? std::optional(*mw / 1000) : std::nullopt;
  }
  void read_heat(Device d, GpuState& out) const {
    out.temperature_c = whole<int>(temperature, d, 0u);
    out.slowdown_c = whole<int>(threshold, d, kThresholdSlowdown);
    out.memory_temperature_c = field(d, kFieldMemoryTemperature);
    out.power_w = watts(power, d);
    out.power_limit_w = watts(power_limit, d);
  }
  void read_health(Device d, GpuState& out) const {
    out.ecc_corrected = whole<uint64_t>(ecc, d, kCorrected, kVolatile);
    out.ecc_uncorrected = whole<uint64_t>(ecc, d, kUncorrected, kVolatile);
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    if (remapped != nullptr &&
        remapped(d, &corrected, &uncorrected, &pending, &failed) == kSuccess) {
      out.rows_corrected = static_cast<int>(corrected);
      out.rows_uncorrected = static_cast<int>(uncorrected);
      out.remap_pending = pending != 0;
      out.remap_failed = failed != 0;
    }
    out.recovery_action = field(d, kFieldRecoveryAction);
  }
  void read_link(Device d, GpuState& out) const {
    out.pcie_gen = whole<int>(pcie_gen, d);
    out.max_pcie_gen = whole<int>(max_pcie_gen, d);
    out.pcie_width = whole<int>(pcie_width, d);
    out.max_pcie_width = whole<int>(max_pcie_width, d);
    out.pcie_replays = whole<uint64_t>(pcie_replays, d);
  }
  GpuState state(int index, Device d) const {
    GpuState out;
    out.index = index;
    if (d == nullptr) {
      out.problem = "the driver does not open it; see dmesg and nvidia-smi";
      return out;
    }
    out.name = text(name, d);
    out.uuid = text(uuid, d);
    Memory bytes{};
    const int code = memory == nullptr ? kSuccess : memory(d, &bytes);
    if (code == kGpuLost) {
      out.problem = text_of(code);
      return out;
    }
    if (memory != nullptr && code == kSuccess) {
      out.memory_bytes = bytes.total;
      out.memory_used_bytes = bytes.used;
    }
    Utilization use{};
    if (utilization != nullptr && utilization(d, &use) == kSuccess) {
      out.use_percent = static_cast<int>(use.gpu);
      out.memory_use_percent = static_cast<int>(use.memory);
    }
    read_clocks(d, out);
    read_heat(d, out);
    read_health(d, out);
    read_link(d, out);
    out.n_processes = n_processes(d);
    return out;
  }
};

std::vector<std::string> names_of_reasons(uint64_t reasons) {
  constexpr std::pair<uint64_t, const char*> kNames[] = {{kReasonIdle, "idle"},
                                                         {kReasonAppClocks, "application clocks"},
                                                         {kReasonPowerCap, "power cap"},
                                                         {kReasonHwSlowdown, "hardware slowdown"},
                                                         {kReasonSyncBoost, "sync boost"},
                                                         {kReasonSwThermal, "software thermal"},
                                                         {kReasonHwThermal, "hardware thermal"},
                                                         {kReasonPowerBrake, "power brake"},
                                                         {kReasonDisplay, "display clocks"}};
  std::vector<std::string> out;
  for (const auto& [bit, name] : kNames) {
    if ((reasons & bit) != 0) out.emplace_back(name);
    reasons &= ~bit;
  }
  if (reasons != 0) out.push_back(fmt::format("0x{:x}", reasons));
  return out;
}

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}

Result<std::unique_ptr<Nvml>> Nvml::open(const std::string& name) {
  // Never closed: the driver's libraries keep threads and handlers.
  void* opened = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    return error(Code::unavailable, "no NVIDIA driver here ({} was not found)", name);
  auto library = std::make_unique<Library>(opened);
  if (!library->is_whole())
    return error(Code::unavailable, "{} lacks calls that every driver since 2014 has", name);
  if (const int code = library->init(); code != kSuccess)
    return error(Code::unavailable, "the NVIDIA driver does not answer: {}",
                 library->text_of(code));
  std::unique_ptr<Nvml> out(new Nvml(std::move(library)));
  const Library& l = *out->library_;
  char version[96] = {};
  if (l.driver_version != nullptr && l.driver_version(version, sizeof version - 1) == kSuccess)
    out->driver_ = version;
  unsigned n = 0;
  if (l.count(&n) != kSuccess) n = 0;
  if (l.make_events == nullptr || l.make_events(&out->events_) != kSuccess) out->events_ = nullptr;
  for (unsigned i = 0; i < std::min(n, kMostGpus); ++i) {
    Device device = nullptr;
    if (l.device(i, &device) != kSuccess) device = nullptr;
    out->devices_.push_back(device);
    // Older GPUs and virtual ones report none, which is no error.
    if (device != nullptr && out->events_ != nullptr && l.register_events != nullptr)
      (void)l.register_events(device, kEventXid, out->events_);
  }
  return out;
}

Nvml::~Nvml() {
  if (events_ != nullptr && library_->free_events != nullptr) (void)library_->free_events(events_);
  (void)library_->shutdown();
}

std::vector<GpuState> Nvml::gpus() {
  std::vector<GpuState> out;
  for (size_t i = 0; i < devices_.size(); ++i)
    out.push_back(library_->state(static_cast<int>(i), devices_[i]));
  return out;
}

std::optional<int> Nvml::find(const std::string& pci_bus_id) const {
  Device device = nullptr;
  if (library_->device_at == nullptr ||
      library_->device_at(pci_bus_id.c_str(), &device) != kSuccess)
    return std::nullopt;
  const auto found = std::find(devices_.begin(), devices_.end(), device);
  if (found == devices_.end()) return std::nullopt;
  return static_cast<int>(found - devices_.begin());
}

GpuLoad Nvml::load(int gpu) const {
  const Device device = devices_[static_cast<size_t>(gpu)];
  if (device == nullptr) return {};
  return {library_->watts(library_->power, device),
          library_->whole<uint64_t>(library_->reasons, device)};
}

std::vector<GpuFault> Nvml::faults() {
  std::vector<GpuFault> out;
  if (events_ == nullptr || library_->wait == nullptr) return out;
  EventData event{};
  for (int i = 0; i < kMostFaults && library_->wait(events_, &event, 0) == kSuccess; ++i) {
    if (event.type != kEventXid) continue;
    const auto found = std::find(devices_.begin(), devices_.end(), event.device);
    out.push_back(
        {found == devices_.end() ? -1 : static_cast<int>(found - devices_.begin()), event.data});
  }
  return out;
}

}  // namespace millrace
