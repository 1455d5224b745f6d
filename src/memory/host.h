// Owners of host memory. HostBuffer is what weights, KV and workspaces live in: 64-byte aligned, on
// huge pages where the system allows and nobody asked for small ones. GuardedBuffer is for tests:
// it ends at a page that faults.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/status.h"

namespace millrace {

// What a buffer's memory is counted in. Huge pages save the processor's table lookups on what is
// streamed; small ones keep memory that is never touched from being resident.
enum class Pages : unsigned char { huge, small };

class HostBuffer {
 public:
  HostBuffer() = default;
  static Result<HostBuffer> make(size_t bytes, Pages pages = Pages::huge);  // zeroed
  ~HostBuffer();
  HostBuffer(HostBuffer&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)),
        bytes_(std::exchange(o.bytes_, 0)),
        mapped_(std::exchange(o.mapped_, 0)) {}
  HostBuffer& operator=(HostBuffer&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    std::swap(mapped_, o.mapped_);
    return *this;
  }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  size_t mapped_ = 0;
};

class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  // data() is the last multiple of `align` (a power of two) from which `bytes` fit before the guard
  // page.
  static Result<GuardedBuffer> make(size_t bytes, size_t align);
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer&& o) noexcept
      : base_(std::exchange(o.base_, nullptr)),
        mapped_(std::exchange(o.mapped_, 0)),
        data_(o.data_),
        bytes_(o.bytes_) {}
  GuardedBuffer& operator=(GuardedBuffer&& o) noexcept {
    std::swap(base_, o.base_);
    std::swap(mapped_, o.mapped_);
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Bytes before data() that belong to the mapping: a test fills them with a pattern to see
  // underruns.
  std::span<std::byte> slack() const;

 private:
  std::byte* base_ = nullptr;
  size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace millrace
