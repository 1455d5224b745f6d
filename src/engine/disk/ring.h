// Reads and writes through io_uring, many at once; where the system refuses that (an old kernel, a
// container), one after the other. The only place that knows liburing.
#pragma once

#include <memory>
#include <span>

namespace millrace::disk {

struct Transfer;

class Ring {
 public:
  explicit Ring(bool wants_uring = true);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void run(std::span<Transfer> transfers);
  bool is_uring() const { return impl_ != nullptr; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;  // null: pread and pwrite
};

}  // namespace millrace::disk
