// The parts that architectures of the llama family share; their files put them together.
#pragma once

#include <string>

#include "model/step_builder.h"

namespace millrace {

// "blk.3."
std::string block_name(int64_t layer);

struct Projections {
  int q, k, v;
};

// h is normed.
Projections project(StepBuilder& b, int h, const std::string& block,
                    StepBuilder::Bias bias = StepBuilder::Bias::if_there);
Projections norm_heads(StepBuilder& b, const Projections& p, const std::string& block);
// Rotates, stores and attends; the result goes to the residual stream.
int attend(StepBuilder& b, int64_t layer, const Projections& p);
int swiglu(StepBuilder& b, int h, const std::string& block);
// The head is the embedding where the model has none of its own.
void output(StepBuilder& b, int x);

}  // namespace millrace
