// llama: Llama 2 and 3, SmolLM2, Mistral. Pre-norm blocks of grouped-head attention with rotary
// embeddings and a SwiGLU feed-forward part; the head may be the embedding itself. Mistral's window
// comes with its configuration.
#include "model/blocks.h"

namespace millrace {

void build_llama(StepBuilder& b) {
  int x = b.embed("token_embd");
  for (int64_t i = 0; i < b.config().n_layers; ++i) {
    const std::string block = block_name(i);
    const Projections p = project(b, b.norm(x, block + "attn_norm"), block);
    x = b.add(x, attend(b, i, p));
    x = b.add(x, swiglu(b, b.norm(x, block + "ffn_norm"), block));
  }
  output(b, x);
}

}  // namespace millrace
