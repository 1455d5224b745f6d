// Where a model lives and runs: this machine's lanes, or a GPU. A device allocates, uploads, runs
// and reads back; weights, activations, step inputs and KV pages lie in its memory. It belongs to
// the thread that made it.
#pragma once

#include <cstddef>
#include <memory>

#include "base/status.h"
#include "exec/program.h"
#include "kernels/pick.h"
#include "machine/team.h"
#include "memory/device.h"
#include "memory/host.h"

namespace millrace {

// Memory of a device, freed with it.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(HostBuffer host) : host_(std::move(host)) {}
  explicit DeviceMemory(DeviceBuffer device) : device_(std::move(device)) {}
  std::byte* data() const { return host_.data() != nullptr ? host_.data() : device_.data(); }
  size_t bytes() const { return host_.data() != nullptr ? host_.bytes() : device_.bytes(); }

 private:
  HostBuffer host_;
  DeviceBuffer device_;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  // "cpu", or the GPU's architecture: what a numerics class does not say.
  virtual std::string_view name() const = 0;
  virtual int n_lanes() const = 0;  // 1 where the word means nothing
  // Zeroed.
  virtual Result<DeviceMemory> allocate(size_t bytes, Pages pages) = 0;
  // In the order of the device's work. `from` may be reused when it returns; pinned memory only
  // when the device has been waited for.
  virtual Status upload(void* to, const void* from, size_t bytes) = 0;
  // Waits for the work before it.
  virtual Status read(void* to, const void* from, size_t bytes) = 0;
  virtual Status copy(void* to, const void* from, size_t bytes) = 0;  // within it
  virtual Status wait() = 0;

  // Makes a Program's workspace, at least `least_bytes` of it.
  virtual Status prepare(Program& program, size_t least_bytes) = 0;
  // `then`, which was prepared too, follows: on lanes in the same dispatch.
  virtual Status run(Program& program, size_t begin, size_t end, const Program* then = nullptr) = 0;
  // The calls [begin, end) as something that replays faster than run(); null where there is none.
  virtual Result<std::unique_ptr<Graph>> record(const Program& program, size_t begin,
                                                size_t end) = 0;
  virtual Status replay(const Graph& graph) = 0;
};

// `team` must outlive it.
std::unique_ptr<Device> cpu_device(Team& team);
Result<std::unique_ptr<Device>> cuda_device();

}  // namespace millrace
