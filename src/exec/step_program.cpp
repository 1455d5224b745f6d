#include "exec/step_program.h"

#include <algorithm>
#include <bit>

namespace millrace {
namespace {

// Rows above this many differ little in which workspace they need.
constexpr int64_t kEveryRows = 64;

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

Status StepProgram::bind(Program& program, CallSizes sizes, size_t begin, size_t end) const {
  for (size_t i = begin; i < end; ++i) {
    Program::Call& call = program.calls()[i - (program.n_calls() == end - begin ? begin : 0)];
    call.args = args_of(lowered_.calls[i], sizes);
    call.variant = variant_for(lowered_.calls[i], call.args, from_);
    if (call.variant == nullptr)
      return error(Code::unsupported, "no variant of {} in class {} takes {}",
                   lowered_.calls[i].op->name, lowered_.calls[i].numerics,
                   lowered_.calls[i].op->key(call.args.bytes));
  }
  return {};
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

// The head gathers from any row of a full arena, so it does not depend on the body's bucket.
Result<Program> StepProgram::device_program(Count count, int64_t n) const {
  const bool is_body = count == Count::rows;
  const size_t begin = is_body ? 0 : n_body_, end = is_body ? n_body_ : lowered_.calls.size();
  Program program;
  for (size_t i = begin; i < end; ++i) program.add(Program::Call{});
  MILLRACE_TRY(bind(program, is_body ? CallSizes{n, 0} : CallSizes{max_rows_, n}, begin, end));
  program.use_device_workspace(workspace_.data());
  return program;
}

// Of every bucket, so that recording one later allocates nothing on the device.
Status StepProgram::make_device_workspace() {
  size_t most = 0;
  for (const Count count : {Count::rows, Count::outputs}) {
    const int64_t largest = count == Count::rows ? max_rows_ : max_outputs_;
    for (int64_t n = 1;; n = padded(n + 1, count)) {
      MILLRACE_ASSIGN(const Program program, device_program(count, n));
      most = std::max(most, program.device_workspace_bytes());
      if (n >= largest) break;
    }
  }
  MILLRACE_ASSIGN(workspace_, device_.allocate(most, Pages::small));
  return {};
}

Result<const StepProgram::Recorded*> StepProgram::recorded(Count count, int64_t n) {
  for (const Recorded& r : recorded_)
    if (r.count == count && r.n == n) return &r;
  MILLRACE_ASSIGN(Program program, device_program(count, n));
  Recorded r{count, n, std::move(program), nullptr};
  MILLRACE_ASSIGN(r.graph, device_.record(r.program, 0, r.program.n_calls()));
  recorded_.push_back(std::move(r));
  return &recorded_.back();
}

Status StepProgram::run(int64_t n_rows, int64_t n_outputs, Program* then) {
  MILLRACE_CHECK(n_rows <= max_rows_ && n_outputs <= max_outputs_,
                 "a step of {} rows and {} outputs", n_rows, n_outputs);
  if (device_.kind() == DeviceKind::cpu) {
    MILLRACE_ASSIGN(Program * program, bound_for(n_rows, n_outputs));
    return device_.run(*program, 0, n_calls(n_outputs), then);
  }
  MILLRACE_ASSIGN(const Recorded* body, recorded(Count::rows, padded(n_rows, Count::rows)));
  MILLRACE_TRY(device_.replay(*body->graph));
  if (n_outputs > 0) {
    MILLRACE_ASSIGN(const Recorded* head,
                    recorded(Count::outputs, padded(n_outputs, Count::outputs)));
    MILLRACE_TRY(device_.replay(*head->graph));
  }
  return then == nullptr ? Status() : device_.run(*then, 0, then->n_calls());
}

}  // namespace millrace
