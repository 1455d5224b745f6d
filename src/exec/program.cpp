#include "exec/program.h"

#include <algorithm>

namespace millrace {

void Program::add(const Variant& variant, const ArgsBox& args) {
  MILLRACE_CHECK(!is_cuda(variant.isa), "{} is a device variant", variant.name);
  calls_.push_back({&variant, args});
}

Status Program::prepare(int n_lanes) {
  size_t bytes = 0;
  for (const Call& call : calls_)
    if (call.variant->workspace_bytes != nullptr)
      bytes = std::max(bytes, call.variant->workspace_bytes(call.args.bytes, n_lanes));
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
    exec.sync();
  }
  return first;
}

Status Program::run(Team& team, size_t begin, size_t end) {
  MILLRACE_CHECK(lane_status_.size() == static_cast<size_t>(team.size()),
                 "prepared for {} lanes, run on {}", lane_status_.size(), team.size());
  team.run([&](Lane& lane) {
    lane_status_[static_cast<size_t>(lane.index)] = run_lane(lane, begin, end);
  });
  for (Status& status : lane_status_)
    if (!status.ok()) return std::move(status);
  return {};
}

}  // namespace millrace
