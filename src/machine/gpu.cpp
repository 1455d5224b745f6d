#include "machine/gpu.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

namespace millrace {
namespace {

// The driver's numbers that are used here (cuda.h; part of its stable ABI).
constexpr int kSuccess = 0, kNoDevice = 100, kSystemNotReady = 802, kDriverMismatch = 803;
constexpr int kNotPermitted = 800, kStubLibrary = 34, kUnknown = 999;
constexpr int kAttributeSms = 16, kAttributeL2 = 38, kAttributeMajor = 75, kAttributeMinor = 76;

struct Driver {
  int (*init)(unsigned flags) = nullptr;
  int (*version)(int* version) = nullptr;
  int (*count)(int* n) = nullptr;
  int (*device)(int* device, int ordinal) = nullptr;
  int (*name)(char* name, int bytes, int device) = nullptr;
  int (*memory)(size_t* bytes, int device) = nullptr;
  int (*attribute)(int* value, int attribute, int device) = nullptr;
  int (*error_name)(int error, const char** name) = nullptr;
};

template <class F>
bool bind(void* library, const char* symbol, F& f) {
  f = reinterpret_cast<F>(dlsym(library, symbol));
  return f != nullptr;
}

bool bind_all(void* library, Driver& d) {
  return bind(library, "cuInit", d.init) && bind(library, "cuDriverGetVersion", d.version) &&
         bind(library, "cuDeviceGetCount", d.count) && bind(library, "cuDeviceGet", d.device) &&
         bind(library, "cuDeviceGetName", d.name) &&
         bind(library, "cuDeviceTotalMem_v2", d.memory) &&
         bind(library, "cuDeviceGetAttribute", d.attribute) &&
         bind(library, "cuGetErrorName", d.error_name);
}

bool on_pci_bus(const HostFiles& host) {
  const std::string devices = "sys/bus/pci/devices";
  for (const std::string& device : host.names(devices)) {
    const std::string at = devices + "/" + device;
    // Display controllers (class 03) of vendor 10de.
    if (host.text(at + "/vendor").value_or("") == "0x10de" &&
        host.text(at + "/class").value_or("").starts_with("0x03"))
      return true;
  }
  return false;
}

std::string why_no_library(const HostFiles& host) {
  if (host.exists("proc/driver/nvidia/version"))
    return "the NVIDIA kernel driver is loaded, but libcuda.so.1 is not visible; in a container, "
           "start it with the GPU passed in (docker: --gpus all)";
  if (on_pci_bus(host))
    return "an NVIDIA GPU is on the PCI bus, but its driver is not installed; install the "
           "distribution's nvidia-driver package and reboot";
  return "no NVIDIA driver (libcuda.so.1) and no NVIDIA GPU on the PCI bus";
}

std::string_view remedy(int error) {
  switch (error) {
    case kNoDevice:
      return "the driver sees no device; check CUDA_VISIBLE_DEVICES, and that the container was "
             "given the GPU";
    case kDriverMismatch:
      return "libcuda.so.1 and the kernel driver are of different versions; reboot, or mount the "
             "host's library into the container";
    case kSystemNotReady:
      return "start the fabric manager service (nvidia-fabricmanager) and try again";
    case kNotPermitted:
      return "this user may not open the GPU; check the rights of /dev/nvidia*";
    case kStubLibrary:
      return "the toolkit's stub libcuda.so.1 was found before the driver's; check LD_LIBRARY_PATH";
    case kUnknown:
      return "the driver is in a bad state; see dmesg, reload the nvidia modules or reboot";
    default:
      return "see dmesg and nvidia-smi";
  }
}

std::string why_failed(const Driver& d, std::string_view call, int error) {
  const char* name = nullptr;
  if (d.error_name(error, &name) != kSuccess || name == nullptr) name = "unknown error";
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return fmt::format("{} failed with {} ({}): {}{}", call, error, name, remedy(error),
                     visible ? fmt::format(" (CUDA_VISIBLE_DEVICES={})", visible) : "");
}

int attribute(const Driver& d, int which, int device) {
  int value = 0;
  return d.attribute(&value, which, device) == kSuccess ? value : 0;
}

Gpu describe(const Driver& d, int index, int device) {
  Gpu gpu;
  gpu.index = index;
  char name[128] = {};
  if (d.name(name, sizeof name - 1, device) == kSuccess) gpu.name = name;
  (void)d.memory(&gpu.memory_bytes, device);
  gpu.sm = attribute(d, kAttributeMajor, device) * 10 + attribute(d, kAttributeMinor, device);
  gpu.n_sms = attribute(d, kAttributeSms, device);
  gpu.l2_bytes = static_cast<size_t>(attribute(d, kAttributeL2, device));
  return gpu;
}

}  // namespace

GpuSearch find_gpus(const HostFiles& host) {
  GpuSearch found;
  // Never closed: the driver keeps threads and handlers once cuInit ran.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  Driver d;
  if (library == nullptr || !bind_all(library, d)) {
    found.problem = library == nullptr ? why_no_library(host)
                                       : "libcuda.so.1 lacks calls that every driver since CUDA 6 "
                                         "has; install a current driver";
    return found;
  }
  (void)d.version(&found.cuda_driver);
  if (const int e = d.init(0); e != kSuccess) {
    found.problem = why_failed(d, "cuInit", e);
    return found;
  }
  int n = 0;
  if (const int e = d.count(&n); e != kSuccess || n == 0)
    found.problem = why_failed(d, "cuDeviceGetCount", e == kSuccess ? kNoDevice : e);
  for (int i = 0; i < n; ++i) {
    int device = 0;
    if (d.device(&device, i) == kSuccess) found.gpus.push_back(describe(d, i, device));
  }
  return found;
}

}  // namespace millrace
