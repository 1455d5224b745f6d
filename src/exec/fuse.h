// Which calls of a lowered step a fused kernel can do in one launch: neighbours that are the ops of
// a Fusion in its classes, hand their values on as it says, and make nothing in between that
// anybody else reads. Pure. Whether a group's bound args fit is asked where a step is bound: a
// fused kernel takes few rows, and beyond them the plain calls run.
#pragma once

#include <span>
#include <vector>

#include "exec/lower.h"
#include "kernels/fusion.h"

namespace millrace {

struct FusedGroup {
  size_t begin = 0;  // of its calls in the lowered step
  const Fusion* fusion = nullptr;

  size_t end() const { return begin + fusion->calls.size(); }
};

// In ascending order; calls are in one group at most. An op that is forced to a variant is in none.
std::vector<FusedGroup> fuse(const StepSpec& spec, std::span<const LoweredCall> calls,
                             std::span<const Fusion* const> with, const Force& force);

// The one call that does the work of a group's, where there is one for these args.
bool join(const FusedGroup& group, std::span<const ArgsBox> plain, const Machine& machine,
          ArgsBox& joined);

}  // namespace millrace
