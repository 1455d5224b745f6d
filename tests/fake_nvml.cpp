// A stand-in for NVIDIA's management library: as many GPUs as the file named by FAKE_NVML says,
// with the values it gives, one "KEY VALUE" per line, read again at every call. "0.temperature 93"
// is GPU 0's; what is not given is not supported. "xid 79" is an event that comes once.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kInsufficient = 7, kTimeout = 10, kLost = 15;

std::optional<unsigned long long> value_of(const std::string& key) {
  const char* name = std::getenv("FAKE_NVML");
  std::ifstream file(name == nullptr ? "" : name);
  std::string found;
  unsigned long long value = 0;
  while (file >> found >> value)
    if (found == key) return value;
  return std::nullopt;
}

char devices[16];
void* device_at(unsigned index) {
  return &devices[index];
}

template <class T>
int give(void* device, const char* key, T* out) {
  const auto at = static_cast<char*>(device) - devices;
  const auto value = value_of(std::to_string(at) + "." + key);
  if (!value) return kNotSupported;
  *out = static_cast<T>(*value);
  return kSuccess;
}

unsigned long long xid_told = 0;

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
  unsigned long long value;
};
struct EventData {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return kSuccess;
}
int nvmlShutdown() {
  return kSuccess;
}
const char* nvmlErrorString(int code) {
  return code == kLost ? "GPU is lost" : "an error";
}
int nvmlSystemGetDriverVersion(char* out, unsigned n) {
  std::snprintf(out, n, "580.95.05");
  return kSuccess;
}
int nvmlDeviceGetCount_v2(unsigned* n) {
  *n = static_cast<unsigned>(value_of("count").value_or(0));
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** out) {
  *out = device_at(index);
  return index < sizeof devices ? kSuccess : kNotSupported;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** out) {
  const auto bus = std::strtoull(std::strchr(id, ':') + 1, nullptr, 16);
  for (unsigned i = 0; i < sizeof devices; ++i)
    if (value_of(std::to_string(i) + ".bus") == bus) {
      *out = device_at(i);
      return kSuccess;
    }
  return kNotSupported;
}
int nvmlDeviceGetName(void*, char* out, unsigned n) {
  std::snprintf(out, n, "NVIDIA H200 <b>fake</b>");
  return kSuccess;
}
int nvmlDeviceGetUUID(void*, char* out, unsigned n) {
  std::snprintf(out, n, "GPU-0000");
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void* d, Utilization* out) {
  out->memory = 0;
  (void)give(d, "memory_use", &out->memory);
  return give(d, "use", &out->gpu);
}
int nvmlDeviceGetMemoryInfo(void* d, Memory* out) {
  unsigned lost = 0;
  if (give(d, "lost", &lost) == kSuccess && lost != 0) return kLost;
  (void)give(d, "used", &out->used);
  return give(d, "memory", &out->total);
}
int nvmlDeviceGetClockInfo(void* d, unsigned type, unsigned* out) {
  return give(d, type == 1 ? "sm_mhz" : "memory_mhz", out);
}
int nvmlDeviceGetMaxClockInfo(void* d, unsigned type, unsigned* out) {
  return give(d, type == 1 ? "max_sm_mhz" : "max_memory_mhz", out);
}
int nvmlDeviceGetCurrentClocksEventReasons(void* d, unsigned long long* out) {
  return give(d, "reasons", out);
}
int nvmlDeviceGetTemperature(void* d, unsigned, unsigned* out) {
  return give(d, "temperature", out);
}
int nvmlDeviceGetTemperatureThreshold(void* d, unsigned type, unsigned* out) {
  return type == 1 ? give(d, "slowdown", out) : kNotSupported;
}
int nvmlDeviceGetPowerUsage(void* d, unsigned* out) {
  return give(d, "power_mw", out);
}
int nvmlDeviceGetEnforcedPowerLimit(void* d, unsigned* out) {
  return give(d, "limit_mw", out);
}
int nvmlDeviceGetTotalEccErrors(void* d, unsigned type, unsigned, unsigned long long* out) {
  return give(d, type == 0 ? "ecc_corrected" : "ecc_uncorrected", out);
}
int nvmlDeviceGetRemappedRows(void* d, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  (void)give(d, "rows_uncorrected", uncorrected);
  (void)give(d, "remap_pending", pending);
  (void)give(d, "remap_failed", failed);
  return give(d, "rows_corrected", corrected);
}
int nvmlDeviceGetCurrPcieLinkGeneration(void* d, unsigned* out) {
  return give(d, "gen", out);
}
int nvmlDeviceGetMaxPcieLinkGeneration(void* d, unsigned* out) {
  return give(d, "max_gen", out);
}
int nvmlDeviceGetCurrPcieLinkWidth(void* d, unsigned* out) {
  return give(d, "width", out);
}
int nvmlDeviceGetMaxPcieLinkWidth(void* d, unsigned* out) {
  return give(d, "max_width", out);
}
int nvmlDeviceGetPcieReplayCounter(void* d, unsigned* out) {
  return give(d, "replays", out);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* d, unsigned* n, void*) {
  const int code = give(d, "processes", n);
  return code == kSuccess && *n > 0 ? kInsufficient : code;
}
int nvmlDeviceGetFieldValues(void* d, int n, FieldValue* values) {
  for (int i = 0; i < n; ++i)
    values[i].code =
        give(d, values[i].field == 82 ? "memory_temperature" : "recovery", &values[i].value);
  return kSuccess;
}
int nvmlEventSetCreate(void** out) {
  *out = devices;
  return kSuccess;
}
int nvmlDeviceRegisterEvents(void*, unsigned long long, void*) {
  return kSuccess;
}
int nvmlEventSetWait_v2(void*, EventData* out, unsigned) {
  const unsigned long long xid = value_of("xid").value_or(0);
  if (xid == 0 || xid == xid_told) return kTimeout;
  xid_told = xid;
  *out = {device_at(0), 8, xid, 0, 0};
  return kSuccess;
}
int nvmlEventSetFree(void*) {
  return kSuccess;
}

}  // extern "C"
