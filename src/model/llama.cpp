// llama: Llama 2 and 3, SmolLM2, Mistral. Pre-norm blocks of grouped-head attention with rotary
// embeddings and a SwiGLU feed-forward part; the head may be the embedding itself.
#include "model/blocks.h"

namespace millrace {

void build_llama(Builder& b) {
  Rows x = b.embed("token_embd");
  for (int64_t i = 0; i < b.config().n_layers; ++i) {
    const std::string block = block_name(i);
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
