#include "exec/device.h"

#include <cstring>

namespace millrace {
namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(Team& team) : team_(team) {}
  DeviceKind kind() const override { return DeviceKind::cpu; }
  std::string_view name() const override { return "cpu"; }
  int n_lanes() const override { return team_.size(); }
  Result<DeviceMemory> allocate(size_t bytes, Pages pages) override {
    MILLRACE_ASSIGN(HostBuffer buffer, HostBuffer::make(bytes, pages));
    return DeviceMemory(std::move(buffer));
  }
  Status upload(void* to, const void* from, size_t bytes) override {
    if (to != from && bytes > 0) std::memcpy(to, from, bytes);
    return {};
  }
  Status read(void* to, const void* from, size_t bytes) override { return upload(to, from, bytes); }
  Status copy(void* to, const void* from, size_t bytes) override { return upload(to, from, bytes); }
  Status wait() override { return {}; }
  Status prepare(Program& program, size_t least_bytes) override {
    return program.prepare(team_.size(), least_bytes);
  }
  Status run(Program& program, size_t begin, size_t end, const Program* then) override {
    return program.run(team_, begin, end, then);
  }
  Result<std::unique_ptr<Graph>> record(const Program&, size_t, size_t) override {
    return std::unique_ptr<Graph>();
  }
  Status replay(const Graph&) override { return error(Code::unsupported, "a CPU runs no graphs"); }

 private:
  Team& team_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(Stream stream, std::string name)
      : stream_(std::move(stream)), name_(std::move(name)) {}
  DeviceKind kind() const override { return DeviceKind::cuda; }
  std::string_view name() const override { return name_; }
  int n_lanes() const override { return 1; }
  Result<DeviceMemory> allocate(size_t bytes, Pages) override {
    MILLRACE_ASSIGN(DeviceBuffer buffer, DeviceBuffer::make(bytes));
    if (bytes > 0) MILLRACE_TRY(stream_.fill(buffer.data(), 0, bytes));
    return DeviceMemory(std::move(buffer));
  }
  // Of pageable memory the driver takes a copy before it returns.
  Status upload(void* to, const void* from, size_t bytes) override {
    return bytes == 0 ? Status() : stream_.copy_to_device(to, from, bytes);
  }
  Status read(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) MILLRACE_TRY(stream_.copy_to_host(to, from, bytes));
    return stream_.sync();
  }
  Status copy(void* to, const void* from, size_t bytes) override {
    return stream_.copy_on_device(to, from, bytes);
  }
  Status wait() override { return stream_.sync(); }
  Status prepare(Program& program, size_t) override { return program.prepare_device(); }
  Status run(Program& program, size_t begin, size_t end, const Program* then) override {
    MILLRACE_TRY(program.launch(stream_, begin, end));
    return then == nullptr ? Status() : then->launch(stream_);
  }
  Result<std::unique_ptr<Graph>> record(const Program& program, size_t begin, size_t end) override {
    MILLRACE_ASSIGN(Graph graph, program.capture(stream_, begin, end));
    return std::make_unique<Graph>(std::move(graph));
  }
  Status replay(const Graph& graph) override { return graph.launch(stream_); }

 private:
  Stream stream_;
  const std::string name_;
};

}  // namespace

std::unique_ptr<Device> cpu_device(Team& team) {
  return std::make_unique<CpuDevice>(team);
}

Result<std::unique_ptr<Device>> cuda_device() {
  MILLRACE_TRY(cuda_device_count().status());
  MILLRACE_ASSIGN(Stream stream, Stream::make());
  MILLRACE_ASSIGN(std::string name, cuda_architecture());
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(std::move(stream), std::move(name)));
}

}  // namespace millrace
