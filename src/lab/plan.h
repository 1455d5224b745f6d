// What a bench run will measure: names from the command line resolved to ops, cases and variants.
// Unknown names are errors that list what exists.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/case.h"
#include "lab/target.h"

namespace millrace::lab {

struct BenchFilter {
  std::vector<std::string> ops;    // none: all
  std::vector<std::string> cases;  // names or shell patterns; none: the timed ones
  // None: all this target has, without the plain ones (no ISA of their own: a thousand times the
  // time of a fast one) unless a case has no other.
  std::vector<std::string> variants;
};

struct PlanItem {
  const Op* op = nullptr;
  Case problem;
  std::string key;
  std::vector<const Variant*> variants;  // in table order
};

Result<std::vector<PlanItem>> plan_bench(const Target& target, const BenchFilter& filter);

// Args that have the case's shape and no data: enough for takes(), key() and a layout's bytes().
ArgsBox shape_of(const Case& problem);

}  // namespace millrace::lab
