// qwen2: llama's blocks with biases on the projections of q, k and v, which must be there.
#include "model/blocks.h"

namespace millrace {

void build_qwen2(StepBuilder& b) {
  int x = b.embed("token_embd");
  for (int64_t i = 0; i < b.config().n_layers; ++i) {
    const std::string block = block_name(i);
    const int h = b.norm(x, block + "attn_norm");
    x = b.add(x, attend(b, i, project(b, h, block, StepBuilder::Bias::required)));
    x = b.add(x, swiglu(b, b.norm(x, block + "ffn_norm"), block));
  }
  output(b, x);
}

}  // namespace millrace
