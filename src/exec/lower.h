// From a StepSpec to calls, in passes that are pure functions of what they are given:
//   choose  - the type every value is kept in and conversions where a product wants another, one
//             numerics class and one layout for each call over all numbers of rows;
//   share   - how the lanes share out each call, so that neighbours give a lane the same part;
//   place   - which values lie in the same memory, barriers where a lane reads or overwrites what
//             another wrote, and an offset for every buffer.
// step_program.h binds the result to memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "exec/step.h"
#include "kernels/pick.h"

namespace millrace {

// A value in one of the types it is kept in.
struct Operand {
  int value = -1;
  DType type = DType::f32;
  int buffer = -1;  // in Lowered::buffers; -1: an input of the step

  bool operator==(const Operand& o) const { return value == o.value && type == o.type; }
};

struct LoweredCall {
  const Op* op = nullptr;
  std::vector<Operand> in = {}, out = {};
  std::vector<int> weights = {};  // in StepSpec::weights
  ArgsBox attrs = {};
  int layer = -1;
  Count count = Count::rows;
  std::string_view layout = {};    // of its weight
  std::string_view numerics = {};  // its class
  bool is_slow = false;            // at some number of rows nothing but plain loops takes it
  bool is_shared_out = true;       // false: in a way of the op's own
  Split split = {};
  bool barrier = true;  // after it
};

// Activations of one or several values after each other: [max rows][row_bytes] at `at` times the
// number of rows that the arena is made for.
struct ArenaBuffer {
  size_t row_bytes = 0;
  Count count = Count::rows;
  size_t at = 0;                        // in bytes, for the arena's number of rows
  int first_phase = 0, last_phase = 0;  // between barriers
};

struct Lowered {
  std::vector<LoweredCall> calls;
  std::vector<ArenaBuffer> buffers;
  size_t arena_bytes = 0;
  // Of every weight the layout that its calls read; "plain": as in the file.
  std::vector<std::string_view> weight_layouts;

  size_t n_barriers() const;
  // All classes in use, sorted, each once.
  std::vector<std::string_view> classes() const;
};

struct LowerFor {
  const PickFrom& from;
  std::span<const DType> weight_types = {};  // as they will be packed
  int64_t max_rows = 1, max_outputs = 1;
  BoundKv kv = {};  // without addresses: its type and sizes decide which variants take a call
};

// In what a device keeps a kind of value.
DType type_of(Kind kind, DeviceKind device);

Result<Lowered> lower(const StepSpec& spec, const LowerFor& how);

// The passes by themselves, for tests and for who prints them.
Result<std::vector<LoweredCall>> choose(const StepSpec& spec, const LowerFor& how);
void share_out(const StepSpec& spec, std::vector<LoweredCall>& calls);
void place(const StepSpec& spec, const LowerFor& how, Lowered& lowered);

struct CallSizes {
  int64_t n_rows = 0, n_outputs = 0;
  int64_t of(Count count) const { return count == Count::rows ? n_rows : n_outputs; }
};
// What a call's args are bound to. Without an arena and inputs they have a shape and no addresses,
// which is what choosing a variant asks for.
struct BindTo {
  std::span<const BoundWeight> weights = {};  // of StepSpec::weights
  BoundKv kv = {};
  std::byte* arena = nullptr;
  std::span<const ArenaBuffer> buffers = {};
  const int* const* inputs = nullptr;  // [kStepInputs]
};
void bind_args(const StepSpec& spec, const LoweredCall& call, CallSizes sizes, const BindTo& to,
               ArgsBox& args);

// The first variant of the call's class and layout that takes these args: forced, the profile's, or
// in table order.
const Variant* variant_for(const LoweredCall& call, const ArgsBox& args, const PickFrom& from);

// One line a call: what it is, how it is shared out, whether a barrier follows.
std::string describe(const Lowered& lowered);

}  // namespace millrace
