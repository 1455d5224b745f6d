// A host buffer's copy on a device, between guard bytes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lab/poison.h"
#include "memory/device.h"

namespace millrace::lab {

inline constexpr size_t kGuard = 512;  // bytes before and after every buffer

// One host buffer on the device, guarded.
class Mirror {
 public:
  static Result<Mirror> make(std::span<std::byte> host) {
    Mirror m;
    m.host_ = host;
    MILLRACE_ASSIGN(m.device_, DeviceBuffer::make(host.size() + 2 * kGuard));
    return m;
  }
  void* data() const { return device_.data() + kGuard; }

  Status upload(const Stream& stream) const {
    MILLRACE_TRY(stream.fill(device_.data(), static_cast<int>(kPoison), device_.bytes()));
    return stream.copy_to_device(data(), host_.data(), host_.size());
  }
  // Fetches the buffer and its guards; `what` names it should a guard have been written.
  Result<std::vector<std::byte>> download(const Stream& stream, std::string_view what) const {
    std::vector<std::byte> all(device_.bytes());
    MILLRACE_TRY(stream.copy_to_host(all.data(), device_.data(), all.size()));
    MILLRACE_TRY(stream.sync());
    for (size_t i = 0; i < kGuard; ++i)
      if (all[i] != kPoison || all[all.size() - 1 - i] != kPoison)
        return error(Code::wrong_result, "bytes outside port {} were written", what);
    return std::vector<std::byte>(all.begin() + kGuard, all.end() - kGuard);
  }

 private:
  std::span<std::byte> host_;
  DeviceBuffer device_;
};

}  // namespace millrace::lab
