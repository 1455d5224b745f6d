// qwen3moe: qwen3's attention; the feed-forward part is a few of many experts, chosen per row.
#include "model/blocks.h"

namespace millrace {

void build_qwen3_moe(Builder& b) {
  Rows x = b.embed("token_embd");
  for (int64_t i = 0; i < b.config().n_layers; ++i) {
    const std::string block = block_name(i);
    b.add(x, attend_with_head_norms(b, i, x));
    Rows h = b.norm(x, block + "ffn_norm", "normed");
    b.add(x, b.experts(h, block, "mixed"));
  }
  output(b, x);
}

}  // namespace millrace
