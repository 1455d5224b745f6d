// The architectures that run here, a row each: adding one is a row here, and a file that builds its
// step. docs/how-to-add-an-architecture.md goes through it.
#pragma once

#include "exec/step.h"
#include "model/config.h"
#include "model/step_builder.h"

namespace millrace {

// What one step of the model computes; it loads nothing.
StepSpec build_step(const Config& config, const HasTensor& has);
StepSpec build_step(const Config& config, const ModelFile& file);

// Each in a file of its own.
void build_llama(StepBuilder& b);
void build_qwen2(StepBuilder& b);
void build_qwen3(StepBuilder& b);
void build_qwen3_moe(StepBuilder& b);

}  // namespace millrace
