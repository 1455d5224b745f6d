#include "exec/step_program.h"

#include <algorithm>
#include <bit>

namespace millrace {
namespace {

// Rows above this many differ little in which workspace they need.
constexpr int64_t kEveryRows = 64;
// Of so many rows a GPU runs body and head as one graph: the fused kernels' number, and ten graphs.
constexpr int64_t kWholeRows = 8;

}  // namespace

StepProgram::StepProgram(const StepSpec& spec, Lowered lowered, const LowerFor& how, Device& device,
                         StepBindings bindings)
    : spec_(spec),
      from_(how.from),
      device_(device),
      max_rows_(how.max_rows),
      max_outputs_(how.max_outputs),
      lowered_(std::move(lowered)),
      bindings_(std::move(bindings)) {
  const auto is_body = [](const LoweredCall& call) { return call.count == Count::rows; };
  const auto head = std::find_if_not(lowered_.calls.begin(), lowered_.calls.end(), is_body);
  MILLRACE_CHECK(std::none_of(head, lowered_.calls.end(), is_body), "the head has calls of {} rows",
                 "all");
  n_body_ = static_cast<size_t>(head - lowered_.calls.begin());
}

Result<StepProgram> StepProgram::make(const StepSpec& spec, Lowered lowered, const LowerFor& how,
                                      Device& device, StepBindings bindings) {
  StepProgram step(spec, std::move(lowered), how, device, std::move(bindings));
  MILLRACE_ASSIGN(step.arena_, device.allocate(step.lowered_.arena_bytes, Pages::small));
  if (device.kind() == DeviceKind::cuda) {
    MILLRACE_TRY(step.make_device_workspace());
    return step;
  }
  for (const LoweredCall& call : step.lowered_.calls)
    step.program_.add({.split = call.split, .barrier = call.barrier});
  MILLRACE_ASSIGN(const size_t bytes, step.most_workspace());
  MILLRACE_TRY(step.bind(step.program_, {1, 1}, 0, step.lowered_.calls.size()));
  MILLRACE_TRY(device.prepare(step.program_, bytes));
  step.bound_ = {1, 1};
  return step;
}

const float* StepProgram::logits() const {
  for (const LoweredCall& call : lowered_.calls)
    for (const Operand& out : call.out)
      if (out.value == spec_.logits)
        return reinterpret_cast<const float*>(arena_.data() +
                                              lowered_.buffers[static_cast<size_t>(out.buffer)].at);
  return nullptr;
}

int64_t StepProgram::padded(int64_t n, Count count) const {
  if (device_.kind() == DeviceKind::cpu) return n;
  const auto bucket = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  return std::min(bucket, count == Count::rows ? max_rows_ : max_outputs_);
}

ArgsBox StepProgram::args_of(const LoweredCall& call, CallSizes sizes) const {
  const BindTo to{
      .weights = bindings_.weights,
      .kv = call.layer >= 0 ? bindings_.layers[static_cast<size_t>(call.layer)] : BoundKv{},
      .arena = arena_.data(),
      .buffers = lowered_.buffers,
      .inputs = bindings_.inputs};
  ArgsBox args;
  bind_args(spec_, call, sizes, to, args);
  return args;
}

Status StepProgram::bind_call(const LoweredCall& from, CallSizes sizes, Program::Call& call) const {
  call.args = args_of(from, sizes);
  call.variant = variant_for(from, call.args, from_);
  if (call.variant == nullptr)
    return error(Code::unsupported, "no variant of {} in class {} takes {}", from.op->name,
                 from.numerics, from.op->key(call.args.bytes));
  return {};
}

Status StepProgram::bind(Program& program, CallSizes sizes, size_t begin, size_t end) const {
  for (size_t i = begin; i < end; ++i)
    MILLRACE_TRY(bind_call(lowered_.calls[i], sizes, program.calls()[i]));
  return {};
}

// The one call of the group that begins at `begin`, where there is one and a kernel for so many
// rows.
bool StepProgram::bind_fused(std::span<const FusedGroup> groups, size_t begin, CallSizes sizes,
                             Program::Call& call) const {
  if (groups.empty() || groups.front().begin != begin) return false;
  std::vector<ArgsBox> plain;
  for (size_t i = begin; i < groups.front().end(); ++i)
    plain.push_back(args_of(lowered_.calls[i], sizes));
  if (!join(groups.front(), plain, from_.machine, call.args)) return false;
  call.variant = &groups.front().fusion->variant;
  return true;
}

// Of all numbers of rows, so that binding other ones later allocates nothing.
Result<size_t> StepProgram::most_workspace() {
  size_t most = 0;
  for (int64_t n = 1; n <= max_rows_;) {
    const CallSizes sizes{n, std::min(n, max_outputs_)};
    MILLRACE_TRY(bind(program_, sizes, 0, lowered_.calls.size()));
    most = std::max(most, program_.place_workspaces(device_.n_lanes()));
    if (n == max_rows_) break;
    n = std::min(n < 16 ? n + 1 : n < kEveryRows ? n + 16 : n + kEveryRows, max_rows_);
  }
  return most;
}

Result<Program*> StepProgram::bound_for(int64_t n_rows, int64_t n_outputs) {
  const CallSizes sizes{n_rows, n_outputs};
  if (bound_.n_rows != n_rows || (n_outputs > 0 && bound_.n_outputs != n_outputs)) {
    bound_ = {0, 0};  // until all of it is bound
    MILLRACE_TRY(bind(program_, sizes, 0, n_calls(n_outputs)));
    const size_t bytes = program_.place_workspaces(device_.n_lanes());
    MILLRACE_CHECK(bytes <= program_.workspace().bytes(), "a step of {} rows needs {} bytes",
                   n_rows, bytes);
    bound_ = {n_rows, n_outputs > 0 ? n_outputs : 0};
  }
  return &program_;
}

Status StepProgram::add_device_calls(Program& program, std::span<const FusedGroup> groups,
                                     Part part) const {
  for (size_t i = part.begin; i < part.end;) {
    while (!groups.empty() && groups.front().begin < i) groups = groups.subspan(1);
    Program::Call call;
    const bool is_fused = bind_fused(groups, i, part.sizes, call);
    if (!is_fused) MILLRACE_TRY(bind_call(lowered_.calls[i], part.sizes, call));
    program.add(call);
    i = is_fused ? groups.front().end() : i + 1;
  }
  return {};
}

// The head gathers from any row of a full arena, so it does not depend on the body's bucket.
Result<Program> StepProgram::device_program(CallSizes sizes) const {
  const std::vector<FusedGroup> groups = fuse(spec_, lowered_.calls, fusions(), from_.force);
  Program program;
  if (sizes.n_rows > 0)
    MILLRACE_TRY(add_device_calls(program, groups, {0, n_body_, {sizes.n_rows, 0}}));
  if (sizes.n_outputs > 0)
    MILLRACE_TRY(add_device_calls(program, groups,
                                  {n_body_, lowered_.calls.size(), {max_rows_, sizes.n_outputs}}));
  program.use_device_workspace(workspace_.data());
  return program;
}

// Of every bucket, so that recording one later allocates nothing on the device.
Status StepProgram::make_device_workspace() {
  size_t most = 0;
  for (const Count count : {Count::rows, Count::outputs}) {
    const int64_t largest = count == Count::rows ? max_rows_ : max_outputs_;
    for (int64_t n = 1;; n = padded(n + 1, count)) {
      const bool is_body = count == Count::rows;
      MILLRACE_ASSIGN(const Program program,
                      device_program(is_body ? CallSizes{n, 0} : CallSizes{0, n}));
      most = std::max(most, program.device_workspace_bytes());
      if (n >= largest) break;
    }
  }
  MILLRACE_ASSIGN(workspace_, device_.allocate(most, Pages::small));
  return {};
}

// Records what was not run before.
Status StepProgram::replay(CallSizes sizes) {
  const auto found = std::find_if(recorded_.begin(), recorded_.end(), [&](const Recorded& r) {
    return r.sizes.n_rows == sizes.n_rows && r.sizes.n_outputs == sizes.n_outputs;
  });
  if (found != recorded_.end()) return device_.replay(*found->graph);
  MILLRACE_ASSIGN(Program program, device_program(sizes));
  Recorded r{sizes, std::move(program), nullptr};
  MILLRACE_ASSIGN(r.graph, device_.record(r.program, 0, r.program.n_calls()));
  recorded_.push_back(std::move(r));
  return device_.replay(*recorded_.back().graph);
}

Status StepProgram::run(int64_t n_rows, int64_t n_outputs, Program* then) {
  MILLRACE_CHECK(n_rows <= max_rows_ && n_outputs <= max_outputs_,
                 "a step of {} rows and {} outputs", n_rows, n_outputs);
  if (device_.kind() == DeviceKind::cpu) {
    MILLRACE_ASSIGN(Program * program, bound_for(n_rows, n_outputs));
    return device_.run(*program, 0, n_calls(n_outputs), then);
  }
  const int64_t rows = padded(n_rows, Count::rows);
  const int64_t outputs = n_outputs > 0 ? padded(n_outputs, Count::outputs) : 0;
  if (rows <= kWholeRows) {
    MILLRACE_TRY(replay({rows, outputs}));
  } else {
    MILLRACE_TRY(replay({rows, 0}));
    if (outputs > 0) MILLRACE_TRY(replay({0, outputs}));
  }
  return then == nullptr ? Status() : device_.run(*then, 0, then->n_calls());
}

}  // namespace millrace
