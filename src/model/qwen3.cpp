// qwen3: llama's blocks with a norm of every head of q and k before they are rotated.
#include "model/blocks.h"

namespace millrace {

void build_qwen3(Builder& b) {
  Rows x = b.embed("token_embd");
  for (int64_t i = 0; i < b.config().n_layers; ++i) {
    const std::string block = block_name(i);
    b.add(x, attend_with_head_norms(b, i, x));
    Rows h = b.norm(x, block + "ffn_norm", "normed");
    b.add(x, swiglu(b, h, block));
  }
  output(b, x);
}

}  // namespace millrace
