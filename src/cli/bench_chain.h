// bench --chain: the products of a whole model chained on the GPU, against its read bandwidth.
#pragma once

#include "cli/recorder.h"

namespace millrace::cli {

int bench_chain(const Recording& recording, bool json);

}  // namespace millrace::cli
