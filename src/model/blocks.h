// The parts that architectures of the llama family share; their files put them together.
#pragma once

#include <fmt/format.h>

#include <string>

#include "model/builder.h"

namespace millrace {

inline std::string block_name(int64_t layer) {
  return fmt::format("blk.{}.", layer);
}

struct Projections {
  Rows q, k, v;
};

// h is normed. The biases of q, k and v are added where the model has them.
inline Projections project(Builder& b, Rows& h, const std::string& block) {
  const Config& c = b.config();
  Projections p;
  b.together([&] {
    p.q = b.linear(h, block + "attn_q", c.n_heads * c.head_dim, "q");
    p.k = b.linear(h, block + "attn_k", c.n_kv_heads * c.head_dim, "k");
  });
  p.v = b.linear(h, block + "attn_v", c.n_kv_heads * c.head_dim, "v");
  b.add_bias(p.q, block + "attn_q");
  b.add_bias(p.k, block + "attn_k");
  b.add_bias(p.v, block + "attn_v");
  return p;
}

inline void rotate(Builder& b, const Projections& p) {
  b.together([&] { b.rotate(p.q, b.config().n_heads); });
  b.rotate(p.k, b.config().n_kv_heads);
}

// p is rotated.
inline Rows attend(Builder& b, int64_t layer, const Projections& p) {
  b.store_kv(layer, p.k, p.v);
  Rows heads = b.attend(layer, p.q, "attended");
  return b.linear(heads, block_name(layer) + "attn_output", b.config().n_embd, "mixed");
}

// qwen3's attention part.
inline Rows attend_with_head_norms(Builder& b, int64_t layer, const Rows& x) {
  const std::string block = block_name(layer);
  Rows h = b.norm(x, block + "attn_norm", "normed");
  Projections p = project(b, h, block);
  b.norm_heads(p.q, block + "attn_q_norm");
  b.norm_heads(p.k, block + "attn_k_norm");
  rotate(b, p);
  return attend(b, layer, p);
}

inline Rows swiglu(Builder& b, Rows& h, const std::string& block) {
  const Config& c = b.config();
  Rows gate, up;
  b.together([&] { gate = b.linear(h, block + "ffn_gate", c.n_ff, "gate"); });
  up = b.linear(h, block + "ffn_up", c.n_ff, "up");
  b.silu_mul(gate, up);
  return b.linear(gate, block + "ffn_down", c.n_embd, "mixed");
}

// The head is the embedding where the model has none of its own.
inline void output(Builder& b, const Rows& x) {
  b.output(x, "output_norm", b.has("output") ? "output" : "token_embd");
}

}  // namespace millrace
