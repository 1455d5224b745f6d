// The weights of a whole model as one stream: the four products of every layer of Qwen3-0.6B (28
// distinct layers, 881 MB of bf16, one row), each fed by the one before, chained in a CUDA graph.
// What this reaches of the read bandwidth is what decoding with one kernel per product can.
#pragma once

#include "base/status.h"
#include "lab/stats.h"
#include "machine/machine.h"

namespace millrace::lab {

struct ChainResult {
  std::vector<double> us = {};  // one per sample, of the whole chain
  double read_bytes = 0;
  double read_gbps = 0;  // the device's measured read bandwidth
  size_t n_products = 0;
  std::string_view variant, witness;  // the variant timed, and the one whose bits it must give
};

// Every sample starts with a flushed L2 and poisoned outputs, and all its outputs are compared bit
// for bit with those of another variant of the class, launched call by call.
Result<ChainResult> measure_chain(const Machine& machine, int n_samples);

}  // namespace millrace::lab
