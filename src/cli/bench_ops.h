// bench MODEL --ops: what every op of a step costs. A real step is run as the engine runs it, then
// its calls again one by one, each between two barriers, on the same rows and pages.
#pragma once

#include "cli/bench_model.h"

namespace millrace::cli {

int bench_ops(const BenchModelOptions& options);

}  // namespace millrace::cli
