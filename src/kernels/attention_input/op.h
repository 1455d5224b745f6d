// What attention reads, made of the residual: with norms of the heads of q and k (qwen3) and
// without (llama). Classes: those of rmsnorm, matmul, rope and kv_store, whose bits it gives.
#pragma once

#include "kernels/attention_input/args.h"
#include "kernels/fusion.h"

namespace millrace::attention_input {

extern const Fusion kFusion, kWithHeadNorms;

std::vector<FusedCase> cases();
std::vector<FusedCase> cases_with_head_norms();

}  // namespace millrace::attention_input
