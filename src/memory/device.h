// Owners of CUDA resources: device and pinned memory, streams, events, graphs. Move-only, one
// resource each. Every call's return becomes a Status. In a build without CUDA the same names exist
// and making one is Code::unavailable, so callers need no conditional compilation.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace millrace {

// The Status of a CUDA runtime return value (cudaError_t); `what` names the call.
Status cuda_status(int error, std::string_view what);

// What each owner shares: a handle that frees itself and moves.
template <void (*Free)(void*)>
class CudaHandle {
 public:
  CudaHandle() = default;
  explicit CudaHandle(void* handle) : handle_(handle) {}
  ~CudaHandle() {
    if (handle_ != nullptr) Free(handle_);
  }
  CudaHandle(CudaHandle&& o) noexcept : handle_(std::exchange(o.handle_, nullptr)) {}
  CudaHandle& operator=(CudaHandle&& o) noexcept {
    std::swap(handle_, o.handle_);
    return *this;
  }
  void* get() const { return handle_; }

 private:
  void* handle_ = nullptr;
};

void free_device(void* p);
void free_pinned(void* p);
void free_stream(void* p);
void free_event(void* p);
void free_graph(void* p);

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  static Result<DeviceBuffer> make(size_t bytes);  // contents undefined
  std::byte* data() const { return static_cast<std::byte*>(handle_.get()); }
  size_t bytes() const { return bytes_; }

 private:
  CudaHandle<free_device> handle_;
  size_t bytes_ = 0;
};

class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  static Result<PinnedBuffer> make(size_t bytes);
  std::byte* data() const { return static_cast<std::byte*>(handle_.get()); }
  size_t bytes() const { return bytes_; }

 private:
  CudaHandle<free_pinned> handle_;
  size_t bytes_ = 0;
};

class Graph;

class Stream {
 public:
  Stream() = default;
  static Result<Stream> make();
  void* get() const { return handle_.get(); }  // cudaStream_t
  Status sync() const;
  Status copy_to_device(void* dst, const void* src, size_t bytes) const;
  Status copy_to_host(void* dst, const void* src, size_t bytes) const;
  Status copy_on_device(void* dst, const void* src, size_t bytes) const;
  Status fill(void* dst, int byte, size_t bytes) const;
  // Everything launched between begin_capture and end_capture becomes a graph instead of running.
  Status begin_capture() const;
  Result<Graph> end_capture() const;

 private:
  CudaHandle<free_stream> handle_;
};

class Event {
 public:
  Event() = default;
  static Result<Event> make();
  Status record(const Stream& stream) const;
  // Microseconds from `start` to this event; both must have completed.
  Result<double> us_since(const Event& start) const;

 private:
  CudaHandle<free_event> handle_;
};

class Graph {  // instantiated, ready to launch
 public:
  Graph() = default;
  explicit Graph(void* exec) : handle_(exec) {}
  Status launch(const Stream& stream) const;

 private:
  CudaHandle<free_graph> handle_;
};

// Persisting lines of the L2 become ordinary ones, and the carve-out for more of them is closed:
// with one left open, persisting lines survive whatever is read after them.
Status reset_persisting_l2();

// Number of usable devices; unavailable, with the reason, when there is none.
Result<int> cuda_device_count();
// Of the device in use, as "sm_90".
Result<std::string> cuda_architecture();
// Likewise, as "0000:18:00.0": what the driver's other libraries know it by.
Result<std::string> cuda_pci_bus_id();

}  // namespace millrace
