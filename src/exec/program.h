// Kernel calls in order, with their args bound and their variants chosen: on the lanes of a team,
// or on a CUDA stream and as a graph. Running one chooses, allocates and looks up nothing. All its
// calls are of one device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "exec/trace.h"
#include "kernels/kernel.h"
#include "machine/team.h"
#include "memory/device.h"
#include "memory/host.h"

namespace millrace {

class Program {
 public:
  struct Call {
    const Variant* variant = nullptr;
    ArgsBox args = {};
    Split split = {};
    // Whether the lanes wait for each other after it. Calls up to the next barrier share no
    // workspace: each has its own from here on.
    bool barrier = true;
    size_t workspace_at = 0, workspace_bytes = 0;
  };

  // What the args point to must outlive the Program.
  void add(const Call& call) { calls_.push_back(call); }
  void add(const Op& op, const Variant& variant, const ArgsBox& args);

  std::span<Call> calls() { return calls_; }
  size_t n_calls() const { return calls_.size(); }
  size_t n_barriers() const;

  // Allocates what the calls need on a team of n_lanes, or on the device; after the last add().
  // With `least_bytes`, place_workspaces() can then fit other args of as much.
  Status prepare(int n_lanes, size_t least_bytes = 0);
  Status prepare_device();
  // The same in memory of somebody else, who has at least device_workspace_bytes().
  size_t device_workspace_bytes() const;
  void use_device_workspace(std::byte* bytes) { borrowed_workspace_ = bytes; }
  // Where each call's workspace begins; returns how many bytes they need together.
  size_t place_workspaces(int n_lanes);
  HostBuffer& workspace() { return workspace_; }
  DeviceBuffer& device_workspace() { return device_workspace_; }

  // Runs calls [begin, end) on the team that it was prepared for. The first failure of any lane is
  // the result; the other lanes still pass the same barriers.
  // `then`, prepared for the same team, follows in the same dispatch.
  Status run(Team& team, size_t begin, size_t end, const Program* then = nullptr);
  Status run(Team& team) { return run(team, 0, calls_.size()); }

  // Runs calls [begin, end) `repeats` times over inside one dispatch; the nanoseconds from when all
  // lanes are there to when all are done.
  Result<int64_t> time_ns(Team& team, size_t begin, size_t end, int repeats);

  // From now on run() and time_ns() record what every lane does; null: nothing. It must be for at
  // least as many lanes.
  void trace_to(Trace* trace) { trace_ = trace; }

  // The same calls in the order of a stream.
  Status launch(const Stream& stream, size_t begin, size_t end) const;
  Status launch(const Stream& stream) const { return launch(stream, 0, calls_.size()); }
  // `repeats` times over, as a graph.
  Result<Graph> capture(const Stream& stream, size_t begin, size_t end, int repeats = 1) const;

 private:
  Status run_call(const Call& call, Exec& exec) const;
  Status run_lane(Lane& lane, size_t begin, size_t end) const;
  Status run_lane_traced(Exec& exec, size_t begin, size_t end) const;
  Status first_failure();

  std::vector<Call> calls_;
  HostBuffer workspace_;
  DeviceBuffer device_workspace_;
  std::byte* borrowed_workspace_ = nullptr;
  std::vector<Status> lane_status_;
  Trace* trace_ = nullptr;
};

}  // namespace millrace
