// Fused kernels: one launch that does the work of several calls of plain ops in a row, with the
// same bits, because it follows the numerics classes it names. A fused folder declares the ops it
// equals and how they hand values on; exec/fuse.h finds such calls in a step.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/fused_case.h"
#include "kernels/kernel.h"

namespace millrace {

struct FusedCall {
  const Op* op;
  std::string_view numerics;
  std::string_view layout = {};  // of its weight; empty: it has none, or a plain one
};

// Input `in` of call `call` is the first output of call `from`.
struct FusedLink {
  int call, in, from;
};

struct Fusion {
  std::string_view name;
  std::span<const FusedCall> calls;  // in order
  std::span<const FusedLink> links;
  int kept;  // the call whose output is written; what the others make is not
  // Makes one call's args of those of `calls`, bound; false where they do not fit together.
  bool (*join)(std::span<const ArgsBox> plain, ArgsBox& joined);
  std::vector<FusedCase> (*cases)();
  // Runs the joined args. No `takes` in a program without device code.
  Variant variant;
};

// Every fusion of the house, those of more calls first, in fusions.cpp.
std::span<const Fusion* const> fusions();

// Whether two pieces of memory share bytes: what one block writes, another may still read.
bool overlap(const void* a, long long a_bytes, const void* b, long long b_bytes);

}  // namespace millrace
