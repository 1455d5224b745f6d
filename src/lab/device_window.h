// One timed window on a GPU's stream. Before it the L2 can be emptied, with nothing left in it that
// would be written back inside the window. A held window begins only when the host has submitted
// all of it, so that what the host takes to launch a graph is not in it. The SM clock is read on
// the device, before and after: cycles over nanoseconds.
#pragma once

#include <functional>

#include "base/status.h"
#include "memory/device.h"

namespace millrace::lab {

class DeviceWindow {
 public:
  static Result<DeviceWindow> make(size_t l2_bytes);

  const Stream& stream() const { return stream_; }
  // Persisting lines are reset and forbidden, and twice the cache of clean lines is read.
  Status flush() const;

  struct Timed {
    double us = 0;
    double sm_mhz = 0;  // 0: the stamps did not tell
  };
  // Submits `work` to the stream and waits for it. held: for work that never blocks the host
  // (graphs); a long row of launches would fill the stream's queue while nothing is taken from it.
  Result<Timed> time(const std::function<Status()>& work, bool held) const;

 private:
  Stream stream_;
  Event start_, stop_;
  DeviceBuffer clean_;  // written once, read by every flush
  PinnedBuffer notes_;  // the gate and the stamps: host memory that the device writes
};

}  // namespace millrace::lab
