#include "exec/program.h"

#include <algorithm>

#include "base/clock.h"

namespace millrace {

void Program::add(const Variant& variant, const ArgsBox& args, Sync sync) {
  MILLRACE_CHECK(!is_cuda(variant.isa), "{} is a device variant", variant.name);
  calls_.push_back({&variant, args, sync});
}

void Program::keep_shared_workspace_apart(int n_lanes) {
  for (size_t i = 0; i + 1 < calls_.size(); ++i)
    if (workspace_bytes_of(calls_[i], n_lanes) + workspace_bytes_of(calls_[i + 1], n_lanes) > 0)
      calls_[i].sync = Sync::barrier;
}

size_t Program::workspace_bytes_of(const Call& call, int n_lanes) {
  if (call.variant->workspace_bytes == nullptr) return 0;
  return call.variant->workspace_bytes(call.args.bytes, n_lanes);
}

Status Program::prepare(int n_lanes) {
  size_t bytes = 0;
  for (const Call& call : calls_) bytes = std::max(bytes, workspace_bytes_of(call, n_lanes));
  keep_shared_workspace_apart(n_lanes);
  MILLRACE_ASSIGN(workspace_, HostBuffer::make(bytes));
  lane_status_.assign(static_cast<size_t>(n_lanes), Status());
  return {};
}

Status Program::run_lane(Lane& lane, size_t begin, size_t end) {
  Exec exec{.lane = lane.index,
            .n_lanes = lane.count,
            .barrier = lane.count > 1 ? lane.barrier : nullptr,
            .workspace = workspace_.data(),
            .workspace_bytes = workspace_.bytes()};
  Status first;
  for (size_t i = begin; i < end; ++i) {
    Status status = calls_[i].variant->run(calls_[i].args.bytes, exec);
    if (first.ok() && !status.ok()) first = std::move(status);
    if (calls_[i].sync == Sync::barrier) exec.sync();
  }
  return first;
}

Status Program::first_failure() {
  for (Status& status : lane_status_)
    if (!status.ok()) return std::move(status);
  return {};
}

Status Program::run(Team& team, size_t begin, size_t end) {
  MILLRACE_CHECK(lane_status_.size() == static_cast<size_t>(team.size()),
                 "prepared for {} lanes, run on {}", lane_status_.size(), team.size());
  team.run([&](Lane& lane) {
    lane_status_[static_cast<size_t>(lane.index)] = run_lane(lane, begin, end);
  });
  return first_failure();
}

Result<int64_t> Program::time_ns(Team& team, size_t begin, size_t end, int repeats) {
  MILLRACE_CHECK(lane_status_.size() == static_cast<size_t>(team.size()),
                 "prepared for {} lanes, run on {}", lane_status_.size(), team.size());
  int64_t elapsed_ns = 0;
  team.run([&](Lane& lane) {
    Status& status = lane_status_[static_cast<size_t>(lane.index)];
    status = Status();
    lane.sync();
    const int64_t start_ns = now_ns();
    for (int i = 0; i < repeats; ++i)
      if (Status s = run_lane(lane, begin, end); status.ok()) status = std::move(s);
    if (lane.index == 0) elapsed_ns = now_ns() - start_ns;
  });
  MILLRACE_TRY(first_failure());
  return elapsed_ns;
}

}  // namespace millrace
