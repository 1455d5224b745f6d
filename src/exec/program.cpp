#include "exec/program.h"

#include <algorithm>

#include "base/clock.h"

namespace millrace {
namespace {

size_t workspace_bytes_of(const Program::Call& call, int n_lanes) {
  if (call.variant->workspace_bytes == nullptr) return 0;
  return (call.variant->workspace_bytes(call.args.bytes, n_lanes) + 63) / 64 * 64;
}

}  // namespace

void Program::add(const Op& op, const Variant& variant, const ArgsBox& args) {
  add({.variant = &variant, .args = args, .split = default_split(op, args.bytes)});
}

size_t Program::n_barriers() const {
  return static_cast<size_t>(
      std::count_if(calls_.begin(), calls_.end(), [](const Call& call) { return call.barrier; }));
}

size_t Program::place_workspaces(int n_lanes) {
  size_t at = 0, most = 0;
  for (Call& call : calls_) {
    call.workspace_at = at;
    call.workspace_bytes = workspace_bytes_of(call, n_lanes);
    at += call.workspace_bytes;
    most = std::max(most, at);
    if (call.barrier) at = 0;
  }
  return most;
}

Status Program::prepare(int n_lanes, size_t least_bytes) {
  const size_t bytes = place_workspaces(n_lanes);
  MILLRACE_ASSIGN(workspace_, HostBuffer::make(std::max(bytes, least_bytes)));
  lane_status_.assign(static_cast<size_t>(n_lanes), Status());
  return {};
}

// Calls of a stream follow each other, so they share one.
size_t Program::device_workspace_bytes() const {
  size_t bytes = 0;
  for (const Call& call : calls_) bytes = std::max(bytes, workspace_bytes_of(call, 1));
  return bytes;
}

Status Program::prepare_device() {
  MILLRACE_ASSIGN(device_workspace_, DeviceBuffer::make(device_workspace_bytes()));
  return {};
}

Status Program::run_call(const Call& call, Exec& exec) const {
  exec.split = call.split;
  exec.workspace = workspace_.data() + call.workspace_at;
  exec.workspace_bytes = call.workspace_bytes;
  return call.variant->run(call.args.bytes, exec);
}

Status Program::run_lane(Lane& lane, size_t begin, size_t end) const {
  Exec exec{.lane = lane.index,
            .n_lanes = lane.count,
            .barrier = lane.count > 1 ? lane.barrier : nullptr};
  if (trace_ != nullptr) return run_lane_traced(exec, begin, end);
  Status first;
  for (size_t i = begin; i < end; ++i) {
    Status status = run_call(calls_[i], exec);
    if (first.ok() && !status.ok()) first = std::move(status);
    if (calls_[i].barrier) exec.sync();
  }
  return first;
}

// A barrier inside a call counts as part of the call.
Status Program::run_lane_traced(Exec& exec, size_t begin, size_t end) const {
  using What = TraceSpan::What;
  Status first;
  for (size_t i = begin; i < end; ++i) {
    const auto at = static_cast<uint32_t>(i);
    const int64_t begin_ns = now_ns();
    Status status = run_call(calls_[i], exec);
    const int64_t end_ns = now_ns();
    trace_->add(exec.lane, {begin_ns, end_ns, at, What::call});
    if (first.ok() && !status.ok()) first = std::move(status);
    if (!calls_[i].barrier) continue;
    exec.sync();
    trace_->add(exec.lane, {end_ns, now_ns(), at, What::wait});
  }
  return first;
}

Status Program::first_failure() {
  for (Status& status : lane_status_)
    if (!status.ok()) return std::move(status);
  return {};
}

Status Program::run(Team& team, size_t begin, size_t end, const Program* then) {
  MILLRACE_CHECK(lane_status_.size() == static_cast<size_t>(team.size()),
                 "prepared for {} lanes, run on {}", lane_status_.size(), team.size());
  team.run([&](Lane& lane) {
    Status& status = lane_status_[static_cast<size_t>(lane.index)];
    status = run_lane(lane, begin, end);
    if (then == nullptr) return;
    if (end > begin && !calls_[end - 1].barrier) lane.sync();
    Status after = then->run_lane(lane, 0, then->calls_.size());
    if (status.ok()) status = std::move(after);
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
    if (end > begin && !calls_[end - 1].barrier) lane.sync();
    if (lane.index == 0) elapsed_ns = now_ns() - start_ns;
  });
  MILLRACE_TRY(first_failure());
  return elapsed_ns;
}

Status Program::launch(const Stream& stream, size_t begin, size_t end) const {
  Exec exec{
      .stream = stream.get(),
      .workspace = borrowed_workspace_ != nullptr ? borrowed_workspace_ : device_workspace_.data(),
      .workspace_bytes = device_workspace_bytes()};
  for (size_t i = begin; i < end; ++i)
    MILLRACE_TRY(calls_[i].variant->run(calls_[i].args.bytes, exec));
  return {};
}

Result<Graph> Program::capture(const Stream& stream, size_t begin, size_t end, int repeats) const {
  MILLRACE_TRY(stream.begin_capture());
  Status launched;
  for (int i = 0; i < repeats && launched.ok(); ++i) launched = launch(stream, begin, end);
  auto graph = stream.end_capture();  // also after a failure: the stream must leave capture mode
  MILLRACE_TRY(launched);
  return graph;
}

}  // namespace millrace
