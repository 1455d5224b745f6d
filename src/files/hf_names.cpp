#include "files/hf_names.h"

#include <fmt/format.h>

#include <charconv>

namespace millrace {
namespace {

constexpr HfName kOutside[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
};

// Inside a layer, as llama has them.
constexpr HfName kInside[] = {
    {"input_layernorm", "attn_norm"},    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},      {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},       {"mlp.gate", "ffn_gate_inp"},
};

bool skip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// A number without leading zeros, and the dot behind it.
std::optional<int64_t> skip_number(std::string_view& text) {
  int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto digits = static_cast<size_t>(end - text.data());
  if (failed != std::errc() || value < 0 || value > INT32_MAX) return std::nullopt;
  if (text.front() == '-' || (text.front() == '0' && digits > 1)) return std::nullopt;
  text.remove_prefix(digits);
  if (!skip(text, ".")) return std::nullopt;
  return value;
}

std::optional<int64_t> skip_layer(std::string_view& name) {
  if (!skip(name, "model.layers.")) return std::nullopt;
  return skip_number(name);
}

std::optional<std::string> expert_in_layer(int64_t layer, std::string_view rest) {
  const auto expert = skip_number(rest);
  if (!expert || !rest.ends_with("_proj.weight")) return std::nullopt;
  rest.remove_suffix(std::string_view("_proj.weight").size());
  if (rest != "gate" && rest != "up" && rest != "down") return std::nullopt;
  return expert_name(layer, rest, *expert);
}

}  // namespace

std::optional<std::string> gguf_name_of(std::string_view name, std::span<const HfName> own) {
  for (const auto& [hf, gguf] : kOutside)
    if (name == hf) return std::string(gguf);
  const auto layer = skip_layer(name);
  if (!layer) return std::nullopt;
  if (skip(name, "mlp.experts.")) return expert_in_layer(*layer, name);
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view kind = name.substr(dot);
  if (kind != ".weight" && kind != ".bias") return std::nullopt;
  for (const std::span<const HfName> names : {own, std::span<const HfName>(kInside)})
    for (const auto& [hf, gguf] : names)
      if (name.substr(0, dot) == hf) return fmt::format("blk.{}.{}{}", *layer, gguf, kind);
  return std::nullopt;
}

std::optional<FusedExperts> fused_experts(std::string_view name) {
  const auto layer = skip_layer(name);
  if (!layer) return std::nullopt;
  if (name == "mlp.experts.gate_up_proj") return FusedExperts{*layer, true};
  if (name == "mlp.experts.down_proj") return FusedExperts{*layer, false};
  return std::nullopt;
}

std::string expert_name(int64_t layer, std::string_view part, int64_t expert) {
  return fmt::format("blk.{}.ffn_{}_exps.{}.weight", layer, part, expert);
}

}  // namespace millrace
