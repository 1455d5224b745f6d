// gemma3: blocks with a norm before and after both parts, head norms, a GeGLU feed-forward part, a
// scaled embedding, and five windowed layers, with a rotary base of their own, to one that sees
// everything.
#include "model/blocks.h"

namespace millrace {
namespace {

int geglu(StepBuilder& b, int h, const std::string& block) {
  const Config& c = b.config();
  const int gate = b.linear(h, block + "ffn_gate", c.n_ff);
  const int up = b.linear(h, block + "ffn_up", c.n_ff);
  return b.linear(b.gelu_mul(gate, up), block + "ffn_down", c.n_embd, Kind::residual);
}

}  // namespace

void build_gemma3(StepBuilder& b) {
  int x = b.embed("token_embd", b.config().embedding_scale);
  for (int64_t i = 0; i < b.config().n_layers; ++i) {
    const std::string block = block_name(i);
    const Projections p = project(b, b.norm(x, block + "attn_norm"), block);
    const int attended = attend(b, i, norm_heads(b, p, block));
    x = b.add(x, b.norm(attended, block + "post_attention_norm", Kind::residual));
    const int fed = geglu(b, b.norm(x, block + "ffn_norm"), block);
    x = b.add(x, b.norm(fed, block + "post_ffw_norm", Kind::residual));
  }
  output(b, x);
}

}  // namespace millrace
