// A lowered step bound to memory and ready to run for any number of rows. On lanes there is one
// Program, whose args are bound again when the number of rows changes. On a GPU there is a graph
// for each bucket of rows and each bucket of outputs; the rows between are padding. What is before
// the wanted rows are gathered is the body, the rest is the head. Of few rows both are one graph,
// since the gap between two is as long as a kernel.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "exec/device.h"
#include "exec/fuse.h"
#include "exec/lower.h"

namespace millrace {

// Where everything lies that the step does not make itself; the addresses never change.
struct StepBindings {
  std::vector<BoundWeight> weights;  // of StepSpec::weights
  std::vector<BoundKv> layers;
  const int* inputs[kStepInputs] = {};
};

class StepProgram {
 public:
  // All must outlive it, but for `lowered`.
  static Result<StepProgram> make(const StepSpec& spec, Lowered lowered, const LowerFor& how,
                                  Device& device, StepBindings bindings);

  const Lowered& lowered() const { return lowered_; }
  // f32 [n_outputs][width of StepSpec::logits], in the device's memory.
  const float* logits() const;
  size_t arena_bytes() const { return arena_.bytes(); }
  // The rows that a step of so many is computed as: more on a GPU.
  int64_t padded(int64_t n, Count count) const;

  // The step's inputs hold n_rows rows and n_outputs wanted ones, and padding behind them. `then`,
  // prepared for the device, follows the logits in the same dispatch: what draws from them.
  Status run(int64_t n_rows, int64_t n_outputs, Program* then = nullptr);

  // For who times the calls one by one: the Program bound for such a step, on lanes alone.
  Result<Program*> bound_for(int64_t n_rows, int64_t n_outputs);
  // How many calls a step of these outputs runs.
  size_t n_calls(int64_t n_outputs) const {
    return n_outputs > 0 ? lowered_.calls.size() : n_body_;
  }

 private:
  StepProgram(const StepSpec& spec, Lowered lowered, const LowerFor& how, Device& device,
              StepBindings bindings);
  struct Recorded {
    CallSizes sizes;  // no rows: the head alone; no outputs: the body alone
    Program program;
    std::unique_ptr<Graph> graph;
  };

  struct Part {
    size_t begin, end;  // of the lowered calls
    CallSizes sizes;
  };

  ArgsBox args_of(const LoweredCall& call, CallSizes sizes) const;
  Status bind_call(const LoweredCall& from, CallSizes sizes, Program::Call& call) const;
  bool bind_fused(std::span<const FusedGroup> groups, size_t begin, CallSizes sizes,
                  Program::Call& call) const;
  Status bind(Program& program, CallSizes sizes, size_t begin, size_t end) const;
  Result<size_t> most_workspace();
  Status add_device_calls(Program& program, std::span<const FusedGroup> groups, Part part) const;
  Result<Program> device_program(CallSizes sizes) const;
  Status make_device_workspace();
  Status replay(CallSizes sizes);

  const StepSpec& spec_;
  const PickFrom from_;
  Device& device_;
  const int64_t max_rows_, max_outputs_;
  Lowered lowered_;
  StepBindings bindings_;
  DeviceMemory arena_;
  size_t n_body_ = 0;
  Program program_;         // of lanes
  CallSizes bound_{0, 0};   // what program_ is bound for
  DeviceMemory workspace_;  // of all graphs, which follow each other
  std::list<Recorded> recorded_;
};

}  // namespace millrace
