// qwen2: llama's blocks with biases on the projections of q, k and v, which must be there.
#include "model/blocks.h"

namespace millrace {

void build_qwen2(Builder& b) {
  Rows x = b.embed("token_embd");
  for (int64_t i = 0; i < b.config().n_layers; ++i) {
    const std::string block = block_name(i);
    for (const char* name : {"attn_q.bias", "attn_k.bias", "attn_v.bias"}) b.need(block + name);
    Rows h = b.norm(x, block + "attn_norm", "normed");
    Projections p = project(b, h, block);
    rotate(b, p);
    b.add(x, attend(b, i, p));
    h = b.norm(x, block + "ffn_norm", "normed");
    b.add(x, swiglu(b, h, block));
  }
  output(b, x);
}

}  // namespace millrace
