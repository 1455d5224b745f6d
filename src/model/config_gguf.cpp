#include "model/config_gguf.h"

#include <cmath>
#include <string>

#include "base/utf8.h"
#include "model/architecture.h"

namespace millrace {
namespace {

// Metadata below the architecture's prefix: key("block_count") is llama.block_count.
class Keys {
 public:
  Keys(const Gguf& gguf, std::string_view prefix) : gguf_(gguf), prefix_(prefix) {}

  std::string key(std::string_view name) const { return fmt::format("{}.{}", prefix_, name); }
  bool has(std::string_view name) const { return gguf_.find(key(name)) != nullptr; }

  // A count that a file may state once or per layer; layers that differ are not supported.
  Result<int64_t> count(std::string_view name) const {
    const GgufValue* value = gguf_.find(key(name));
    if (value == nullptr || !value->is_array || value->count == 0) return gguf_.integer(key(name));
    const auto first = value->integer();
    for (size_t i = 0; i < value->count; ++i)
      if (!first || value->integer(i) != first)
        return error(Code::unsupported, "{}: '{}' differs between layers, which is not supported",
                     printable(gguf_.path()), key(name));
    return *first;
  }
  Result<int64_t> count_or(std::string_view name, int64_t fallback) const {
    return has(name) ? count(name) : fallback;
  }
  Result<double> real(std::string_view name) const { return gguf_.real(key(name)); }
  Result<double> real_or(std::string_view name, double fallback) const {
    return gguf_.real_or(key(name), fallback);
  }
  Result<bool> boolean_or(std::string_view name, bool fallback) const {
    return gguf_.boolean_or(key(name), fallback);
  }
  Result<std::string_view> string_or(std::string_view name, std::string_view fallback) const {
    return gguf_.string_or(key(name), fallback);
  }
  Status unsupported(std::string_view name, std::string_view why) const {
    return error(Code::unsupported, "{}: '{}' {}", printable(gguf_.path()), key(name), why);
  }

 private:
  const Gguf& gguf_;
  std::string_view prefix_;
};

Status read_heads(const Keys& keys, Config& config) {
  MILLRACE_ASSIGN(config.n_heads, keys.count("attention.head_count"));
  MILLRACE_ASSIGN(config.n_kv_heads, keys.count_or("attention.head_count_kv", config.n_heads));
  if (config.n_heads < 1) return keys.unsupported("attention.head_count", "is not positive");
  MILLRACE_ASSIGN(config.head_dim,
                  keys.count_or("attention.key_length", config.n_embd / config.n_heads));
  MILLRACE_ASSIGN(const int64_t value_length,
                  keys.count_or("attention.value_length", config.head_dim));
  if (value_length != config.head_dim)
    return keys.unsupported("attention.value_length", "differs from the keys' length");
  return {};
}

Status read_experts(const Keys& keys, Config& config) {
  MILLRACE_ASSIGN(config.n_experts, keys.count_or("expert_count", 0));
  if (!config.architecture->has_experts) {
    if (config.n_experts != 0)
      return keys.unsupported("expert_count", "is set, but this architecture has no experts");
    return {};
  }
  if (config.n_experts < 1) return keys.unsupported("expert_count", "is missing or not positive");
  MILLRACE_ASSIGN(config.n_experts_used, keys.count("expert_used_count"));
  MILLRACE_ASSIGN(config.n_ff, keys.count("expert_feed_forward_length"));
  MILLRACE_ASSIGN(config.norm_expert_weights, keys.boolean_or("expert_weights_norm", true));
  return {};
}

// The factor by which positions are interpolated, as freq_scale.
Status read_rope_factor(const Keys& keys, rope::Scaling& rope) {
  MILLRACE_ASSIGN(const double linear, keys.real_or("rope.scale_linear", 1));
  MILLRACE_ASSIGN(const double factor, keys.real_or("rope.scaling.factor", linear));
  if (!(factor > 0) || !std::isfinite(factor))
    return keys.unsupported("rope.scaling.factor", "is not a positive number");
  rope.freq_scale = 1 / factor;
  return {};
}

Status read_yarn(const Keys& keys, int64_t n_ctx, rope::Scaling& rope) {
  MILLRACE_ASSIGN(rope.ext_factor, keys.real_or("rope.scaling.yarn_ext_factor", 1));
  MILLRACE_ASSIGN(const double attn_factor, keys.real_or("rope.scaling.yarn_attn_factor", 1));
  rope.attn_factor *= attn_factor;
  MILLRACE_ASSIGN(rope.beta_fast, keys.real_or("rope.scaling.yarn_beta_fast", 32));
  MILLRACE_ASSIGN(rope.beta_slow, keys.real_or("rope.scaling.yarn_beta_slow", 1));
  MILLRACE_ASSIGN(rope.orig_ctx, keys.count_or("rope.scaling.original_context_length", n_ctx));
  return {};
}

Status read_rope(const Keys& keys, Config& config) {
  MILLRACE_ASSIGN(config.rot_dim, keys.count_or("rope.dimension_count", config.head_dim));
  config.rope_order =
      config.architecture->pairs_neighbours ? rope::PairOrder::normal : rope::PairOrder::neox;
  rope::Scaling& rope = config.rope;
  MILLRACE_ASSIGN(rope.freq_base, keys.real_or("rope.freq_base", 10000));
  // As llama.cpp reads it: a factor counts without a type, and attn_factor with any.
  MILLRACE_ASSIGN(const double attn_factor, keys.real_or("rope.scaling.attn_factor", 1));
  if (!(attn_factor > 0) || !std::isfinite(attn_factor))
    return keys.unsupported("rope.scaling.attn_factor", "is not a positive number");
  rope.attn_factor = attn_factor;
  MILLRACE_ASSIGN(const std::string_view type, keys.string_or("rope.scaling.type", "linear"));
  if (type == "none") return {};
  if (type != "linear" && type != "yarn")
    return keys.unsupported(
        "rope.scaling.type",
        fmt::format("is '{}'; supported are none, linear and yarn", printable(type, 80)));
  MILLRACE_TRY(read_rope_factor(keys, rope));
  return type == "yarn" ? read_yarn(keys, config.n_ctx, rope) : Status();
}

Status read_query_scale(const Keys& keys, Config& config) {
  MILLRACE_ASSIGN(config.query_scale, keys.real_or("attention.scale", 0));
  if (config.query_scale >= 0 && std::isfinite(config.query_scale)) return {};
  return keys.unsupported("attention.scale", "is not a positive number");
}

Status read_window(const Keys& keys, Config& config) {
  MILLRACE_ASSIGN(config.window, keys.count_or("attention.sliding_window", 0));
  if (config.window == 0) return {};
  if (config.architecture->windows == Windows::none)
    return keys.unsupported("attention.sliding_window",
                            "is set, which is not supported for this architecture");
  const bool has_pattern = keys.has("attention.sliding_window_pattern");
  if (has_pattern && config.architecture->windows == Windows::all)
    return keys.unsupported("attention.sliding_window_pattern",
                            "is set, which is not supported for this architecture");
  MILLRACE_ASSIGN(config.full_every, keys.count_or("attention.sliding_window_pattern", 0));
  MILLRACE_ASSIGN(config.window_rope_base, keys.real_or("rope.freq_base_swa", 0));
  return {};
}

// Keys that change what is computed and that no architecture here obeys.
Status refuse_unknown_arithmetic(const Keys& keys) {
  MILLRACE_ASSIGN(const bool causal, keys.boolean_or("attention.causal", true));
  if (!causal)
    return keys.unsupported("attention.causal", "is false: the model does not predict tokens");
  for (const std::string_view name :
       {"attention.clamp_kqv", "attention.max_alibi_bias", "attn_logit_softcapping",
        "final_logit_softcapping", "residual_scale", "embedding_scale", "logit_scale",
        "attention.output_scale", "attention.temperature_scale",
        "rope.scaling.yarn_log_multiplier"}) {
    MILLRACE_ASSIGN(const double value, keys.real_or(name, 0));
    if (value != 0) return keys.unsupported(name, "is set, which is not supported");
  }
  // The last: its blocks of multi-token prediction count among the layers.
  for (const std::string_view name :
       {"attention.temperature_length", "attention.shared_kv_layers", "nextn_predict_layers"}) {
    MILLRACE_ASSIGN(const int64_t value, keys.count_or(name, 0));
    if (value != 0) return keys.unsupported(name, "is set, which is not supported");
  }
  MILLRACE_ASSIGN(const bool parallel, keys.boolean_or("use_parallel_residual", false));
  if (parallel) return keys.unsupported("use_parallel_residual", "is true, which is not supported");
  return {};
}

Status read_vocabulary(const Gguf& gguf, Config& config) {
  const GgufTensor* embedding = gguf.find_tensor("token_embd.weight");
  if (embedding == nullptr)
    return error(Code::unsupported, "{}: tensor 'token_embd.weight' is missing{}",
                 printable(gguf.path()),
                 gguf.tensors().empty() ? ": the file has a vocabulary and no model" : "");
  if (embedding->shape.size() != 2 || embedding->shape[1] != config.n_embd)
    return error(Code::corrupt, "{}: tensor 'token_embd.weight' has no rows of {} elements",
                 printable(gguf.path()), config.n_embd);
  config.n_vocab = embedding->shape[0];
  return {};
}

Status check_tensor_types(const Gguf& gguf) {
  for (const GgufTensor& tensor : gguf.tensors())
    if (!dtype_of_gguf(tensor.type_id))
      return error(Code::unsupported, "{}: tensor '{}' is {}, which is not supported",
                   printable(gguf.path()), tensor.name, gguf_tensor_type_name(tensor.type_id));
  return {};
}

}  // namespace

Result<Config> read_config(const Gguf& gguf) {
  MILLRACE_ASSIGN(const std::string_view name, gguf.string("general.architecture"));
  const auto architecture = architecture_named(name);
  if (!architecture.ok())
    return error(Code::unsupported, "{}: {}", printable(gguf.path()),
                 architecture.status().message());
  Config config;
  config.architecture = architecture.value();
  MILLRACE_ASSIGN(const std::string_view title, gguf.string_or("general.name", ""));
  config.name = printable(title, 200);
  const Keys keys(gguf, name);
  MILLRACE_ASSIGN(config.n_layers, keys.count("block_count"));
  MILLRACE_ASSIGN(config.n_embd, keys.count("embedding_length"));
  MILLRACE_ASSIGN(config.n_ctx, keys.count("context_length"));
  MILLRACE_ASSIGN(config.n_ff, keys.count_or("feed_forward_length", 0));
  MILLRACE_TRY(read_heads(keys, config));
  MILLRACE_TRY(read_experts(keys, config));
  MILLRACE_ASSIGN(const double eps, keys.real("attention.layer_norm_rms_epsilon"));
  config.rms_eps = static_cast<float>(eps);
  MILLRACE_TRY(read_rope(keys, config));
  MILLRACE_TRY(read_query_scale(keys, config));
  MILLRACE_TRY(read_window(keys, config));
  MILLRACE_TRY(refuse_unknown_arithmetic(keys));
  if (config.architecture->complete != nullptr)
    MILLRACE_TRY(config.architecture->complete(/*is_gguf=*/true, config));
  MILLRACE_TRY(read_vocabulary(gguf, config));
  MILLRACE_TRY(check_tensor_types(gguf));
  const Status status = validate(config);
  if (!status.ok()) return error(status.code(), "{}: {}", printable(gguf.path()), status.message());
  return config;
}

}  // namespace millrace
