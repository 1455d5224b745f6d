// A step as data on a device: kernel calls in stream order, launched one by one or captured into a
// graph. Like Program, choices are made when it is built, and running it allocates nothing.
#pragma once

#include <vector>

#include "base/status.h"
#include "kernels/case.h"
#include "kernels/kernel.h"
#include "memory/device.h"

namespace millrace {

class DeviceProgram {
 public:
  // The args point to device memory, which must outlive the program.
  void add(const Variant& variant, const ArgsBox& args);

  // Allocates the workspace, shared by all calls; once, after the last add().
  Status prepare();

  size_t n_calls() const { return calls_.size(); }
  DeviceBuffer& workspace() { return workspace_; }

  Status launch(const Stream& stream, size_t begin, size_t end) const;
  Status launch(const Stream& stream) const { return launch(stream, 0, calls_.size()); }
  // The calls [begin, end), `repeats` times over, as a graph.
  Result<Graph> capture(const Stream& stream, size_t begin, size_t end, int repeats = 1) const;

 private:
  struct Call {
    const Variant* variant;
    ArgsBox args;
  };
  std::vector<Call> calls_;
  DeviceBuffer workspace_;
};

}  // namespace millrace
