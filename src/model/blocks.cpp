#include "model/blocks.h"

#include <fmt/format.h>

namespace millrace {

std::string block_name(int64_t layer) {
  return fmt::format("blk.{}.", layer);
}

Projections project(StepBuilder& b, int h, const std::string& block, StepBuilder::Bias bias) {
  const Config& c = b.config();
  const int64_t n_q = c.n_heads * c.head_dim, n_kv = c.n_kv_heads * c.head_dim;
  return {b.linear(h, block + "attn_q", n_q, Kind::activation, bias),
          b.linear(h, block + "attn_k", n_kv, Kind::activation, bias),
          b.linear(h, block + "attn_v", n_kv, Kind::activation, bias)};
}

Projections norm_heads(StepBuilder& b, const Projections& p, const std::string& block) {
  return {b.norm_heads(p.q, block + "attn_q_norm"), b.norm_heads(p.k, block + "attn_k_norm"), p.v};
}

int attend(StepBuilder& b, int64_t layer, const Projections& p) {
  const Config& c = b.config();
  const RopeParameters rope = rope_of(c, layer);
  const std::string factors = b.has("rope_freqs.weight") ? "rope_freqs.weight" : "";
  const int q = b.rotate(p.q, c.n_heads, rope, factors);
  const int k = b.rotate(p.k, c.n_kv_heads, rope, factors);
  const int index = static_cast<int>(layer);
  b.store(index, k, p.v);
  const int heads = b.attend(index, q, c.window_of(layer), c.attention_scale());
  return b.linear(heads, block_name(layer) + "attn_output", c.n_embd, Kind::residual);
}

int swiglu(StepBuilder& b, int h, const std::string& block) {
  const Config& c = b.config();
  const int gate = b.linear(h, block + "ffn_gate", c.n_ff);
  const int up = b.linear(h, block + "ffn_up", c.n_ff);
  return b.linear(b.silu_mul(gate, up), block + "ffn_down", c.n_embd, Kind::residual);
}

void output(StepBuilder& b, int x) {
  b.output(x, "output_norm", b.has("output.weight") ? "output" : "token_embd");
}

}  // namespace millrace
