#include "machine/pin.h"

#include <unistd.h>

namespace millrace {

ScopedPin::ScopedPin(int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(cpu), &one);
  // Only what can be put back is changed.
  if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  if (sched_setaffinity(0, sizeof one, &one) == 0) thread_ = gettid();
}

ScopedPin::~ScopedPin() {
  // Another thread's affinity is not ours to touch, and its number may have been given away.
  if (thread_ != 0 && thread_ == gettid()) (void)sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace millrace
