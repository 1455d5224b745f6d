// The weights of a whole model as one stream: the four products of every layer of Qwen3-0.6B (28
// distinct layers, 881 MB of bf16, one row), each fed by the one before, chained in a CUDA graph.
// What this reaches of the read bandwidth is what decoding with one kernel per product can.
#pragma once

#include "base/status.h"
#include "lab/bench.h"
#include "machine/machine.h"

namespace millrace::lab {

struct ChainRun {
  CaseRun run;  // of matmul: one series and its twin, a sample of which is the whole chain
  size_t n_products = 0;
  std::string_view witness;  // the variant whose bits the timed one must give
};

// Every sample starts with a flushed L2 and poisoned outputs, and all its outputs are compared bit
// for bit with those of another variant of the class, launched call by call.
Result<ChainRun> measure_chain(const Machine& machine, int n_samples);

}  // namespace millrace::lab
