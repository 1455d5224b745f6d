// bench MODEL --trace FILE: when each lane began and ended every call of a few steps and waited at
// their barriers, in the Trace Event Format that Perfetto and Chrome read.
#pragma once

#include "cli/bench_model.h"

namespace millrace::cli {

int bench_trace(const BenchModelOptions& options);

}  // namespace millrace::cli
