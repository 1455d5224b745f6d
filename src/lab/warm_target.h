// The CPU as a target of warm rows alone: its rigs hold a few entries instead of many caches full,
// so that dozens of them can be mounted at once (lab/cliffs.h).
#pragma once

#include <memory>

#include "lab/target.h"

namespace millrace::lab {

std::unique_ptr<Target> warm_cpu_target(const Machine& machine, int n_lanes);

}  // namespace millrace::lab
