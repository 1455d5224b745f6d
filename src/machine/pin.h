// Keeping a thread on one CPU.
#pragma once

#include <sched.h>
#include <sys/types.h>

namespace millrace {

// Keeps the calling thread on `cpu` until destroyed, then puts its affinity back. Refusal (a
// container without the right, a CPU that is not there) is no error: the thread stays as it was.
class ScopedPin {
 public:
  explicit ScopedPin(int cpu);
  ~ScopedPin();
  ScopedPin(const ScopedPin&) = delete;
  ScopedPin& operator=(const ScopedPin&) = delete;

 private:
  pid_t thread_ = 0;  // 0: not pinned
  cpu_set_t before_{};
};

}  // namespace millrace
