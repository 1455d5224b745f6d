#include "lab/device_window.h"

#include <atomic>

#include "lab/device_roof.h"

namespace millrace::lab {

#ifdef MILLRACE_CUDA
namespace {

constexpr size_t kFlushOverCache = 2;
// Longer than the host takes to submit any graph of the lab, and short enough to wait for should it
// ever block: the sample is an error then.
constexpr unsigned long long kHoldNs = 200'000'000;

// What lies in the pinned buffer.
struct Notes {
  Gate gate;
  Stamp before, after;
};

double mhz_between(const Stamp& a, const Stamp& b) {
  if (a.ns == 0 || b.ns <= a.ns || b.cycles <= a.cycles) return 0;
  return 1e3 * static_cast<double>(b.cycles - a.cycles) / static_cast<double>(b.ns - a.ns);
}

}  // namespace

Result<DeviceWindow> DeviceWindow::make(size_t l2_bytes) {
  DeviceWindow out;
  MILLRACE_ASSIGN(out.stream_, Stream::make());
  MILLRACE_ASSIGN(out.start_, Event::make());
  MILLRACE_ASSIGN(out.stop_, Event::make());
  MILLRACE_ASSIGN(out.clean_, DeviceBuffer::make(kFlushOverCache * l2_bytes));
  MILLRACE_ASSIGN(out.notes_, PinnedBuffer::make(sizeof(Notes)));
  MILLRACE_TRY(out.stream_.fill(out.clean_.data(), 1, out.clean_.bytes()));
  MILLRACE_TRY(out.stream_.sync());
  return out;
}

Status DeviceWindow::flush() const {
  MILLRACE_TRY(reset_persisting_l2());
  return cuda_status(launch_evict(clean_.data(), clean_.bytes(), clean_.data(), stream_.get()),
                     "flush");
}

Result<DeviceWindow::Timed> DeviceWindow::time(const std::function<Status()>& work,
                                               bool held) const {
  auto* notes = reinterpret_cast<Notes*>(notes_.data());
  *notes = {};
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (held) MILLRACE_TRY(cuda_status(launch_gate(&notes->gate, kHoldNs, stream_.get()), "gate"));
  MILLRACE_TRY(cuda_status(launch_stamp(&notes->before, stream_.get()), "stamp"));
  MILLRACE_TRY(start_.record(stream_));
  const Status worked = work();
  const Status stopped = stop_.record(stream_);
  const Status stamped = cuda_status(launch_stamp(&notes->after, stream_.get()), "stamp");
  std::atomic_ref(notes->gate.open).store(1, std::memory_order_seq_cst);  // also after a failure
  MILLRACE_TRY(stream_.sync());
  for (const Status& status : {worked, stopped, stamped}) MILLRACE_TRY(status);
  if (notes->gate.expired != 0)
    return error(Code::unavailable, "the host took more than {} ms to submit one sample to the GPU",
                 kHoldNs / 1000000);
  MILLRACE_ASSIGN(const double us, stop_.us_since(start_));
  return Timed{us, mhz_between(notes->before, notes->after)};
}

#else

Result<DeviceWindow> DeviceWindow::make(size_t) {
  return cuda_device_count().status();
}
Status DeviceWindow::flush() const {
  return cuda_device_count().status();
}
Result<DeviceWindow::Timed> DeviceWindow::time(const std::function<Status()>&, bool) const {
  return cuda_device_count().status();
}

#endif

}  // namespace millrace::lab
