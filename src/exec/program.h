// A step as data: ordered kernel calls with their args bound and their variants chosen. Choices are
// resolved when the Program is built, not per call. run() executes all of it inside one dispatch of
// a team, with a barrier after every call that does not say it needs none; it allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/case.h"
#include "kernels/kernel.h"
#include "machine/team.h"
#include "memory/host.h"

namespace millrace {

class Program {
 public:
  // Whether lanes wait for each other after a call. `none`: the next call reads nothing that this
  // one writes; the barrier still stands where one of the two has a workspace, which they share.
  enum class Sync : unsigned char { barrier, none };

  // What the args point to must outlive the Program.
  void add(const Variant& variant, const ArgsBox& args, Sync sync = Sync::barrier);

  // Allocates what the calls need on a team of n_lanes; once, after the last add().
  Status prepare(int n_lanes);

  size_t n_calls() const { return calls_.size(); }
  HostBuffer& workspace() { return workspace_; }

  // Runs calls [begin, end) on the team that it was prepared for. The first failure of any lane is
  // the result; the other lanes still pass the same barriers.
  Status run(Team& team, size_t begin, size_t end);
  Status run(Team& team) { return run(team, 0, calls_.size()); }

  // Runs calls [begin, end) `repeats` times over inside one dispatch; the nanoseconds from when all
  // lanes are there to when all are done.
  Result<int64_t> time_ns(Team& team, size_t begin, size_t end, int repeats);

 private:
  struct Call {
    const Variant* variant;
    ArgsBox args;
    Sync sync;
  };
  static size_t workspace_bytes_of(const Call& call, int n_lanes);
  void keep_shared_workspace_apart(int n_lanes);
  Status run_lane(Lane& lane, size_t begin, size_t end);
  Status first_failure();

  std::vector<Call> calls_;
  HostBuffer workspace_;
  std::vector<Status> lane_status_;
};

}  // namespace millrace
