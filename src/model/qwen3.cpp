// qwen3: llama's blocks with a norm of every head of q and k before they are rotated. qwen3moe: the
// same attention; the feed-forward part is a few of many experts, chosen per row.
#include "model/blocks.h"

namespace millrace {
namespace {

int attend_with_head_norms(StepBuilder& b, int64_t layer, int x) {
  const std::string block = block_name(layer);
  const Projections p = project(b, b.norm(x, block + "attn_norm"), block);
  return attend(b, layer, norm_heads(b, p, block));
}

}  // namespace

void build_qwen3(StepBuilder& b) {
  int x = b.embed("token_embd");
  for (int64_t i = 0; i < b.config().n_layers; ++i) {
    const std::string block = block_name(i);
    x = b.add(x, attend_with_head_norms(b, i, x));
    x = b.add(x, swiglu(b, b.norm(x, block + "ffn_norm"), block));
  }
  output(b, x);
}

void build_qwen3_moe(StepBuilder& b) {
  int x = b.embed("token_embd");
  for (int64_t i = 0; i < b.config().n_layers; ++i) {
    const std::string block = block_name(i);
    x = b.add(x, attend_with_head_norms(b, i, x));
    x = b.add(x, b.experts(b.norm(x, block + "ffn_norm"), block));
  }
  output(b, x);
}

}  // namespace millrace
