// How Hugging Face names the tensors of the architectures that run here, in GGUF's words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

// A part of a layer, without .weight or .bias: {"self_attn.q_proj", "attn_q"}.
struct HfName {
  std::string_view hf, gguf;
};
// What an architecture calls otherwise than llama does, by config.json's model_type.
using HfNamesOf = std::span<const HfName> (*)(std::string_view model_type);

// model.layers.3.self_attn.q_proj.weight is blk.3.attn_q.weight; an expert of a layer, which GGUF
// stacks, keeps its number: model.layers.3.mlp.experts.7.up_proj.weight is
// blk.3.ffn_up_exps.7.weight. None for a name that is not one of them.
std::optional<std::string> gguf_name_of(std::string_view hf_name, std::span<const HfName> own);

// All experts of a layer in one tensor, as newer checkpoints may have them.
struct FusedExperts {
  int64_t layer = 0;
  bool gate_up = false;  // [n_experts][2 * n_ff][n_embd], gate first; else down: [..][n_embd][n_ff]
};
std::optional<FusedExperts> fused_experts(std::string_view hf_name);

std::string expert_name(int64_t layer, std::string_view part,
                        int64_t expert);  // part: gate, up, down

}  // namespace millrace
