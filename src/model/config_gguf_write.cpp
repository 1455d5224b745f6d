#include "model/config_gguf.h"

#include "model/architecture.h"

namespace millrace {
namespace {

// Keys below the architecture's prefix.
class Keys {
 public:
  Keys(std::string_view prefix, GgufWriter& writer) : prefix_(prefix), writer_(writer) {}

  void count(std::string_view name, int64_t value) {
    writer_.add_u32(key(name), static_cast<uint32_t>(value));
  }
  void real(std::string_view name, double value) {
    writer_.add_f32(key(name), static_cast<float>(value));
  }
  void boolean(std::string_view name, bool value) { writer_.add_bool(key(name), value); }
  void string(std::string_view name, std::string_view value) {
    writer_.add_string(key(name), value);
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", prefix_, name); }

  std::string_view prefix_;
  GgufWriter& writer_;
};

void write_scaling(const rope::Scaling& rope, Keys& keys) {
  const bool is_yarn = rope.ext_factor != 0;
  if (!is_yarn && rope.freq_scale == 1) return;
  keys.string("rope.scaling.type", is_yarn ? "yarn" : "linear");
  keys.real("rope.scaling.factor", 1 / rope.freq_scale);
  if (rope.attn_factor != 1) keys.real("rope.scaling.attn_factor", rope.attn_factor);
  if (!is_yarn) return;
  keys.count("rope.scaling.original_context_length", rope.orig_ctx);
  keys.real("rope.scaling.yarn_ext_factor", rope.ext_factor);
  keys.real("rope.scaling.yarn_beta_fast", rope.beta_fast);
  keys.real("rope.scaling.yarn_beta_slow", rope.beta_slow);
}

}  // namespace

void write_config(const Config& config, GgufWriter& writer) {
  writer.add_string("general.architecture", config.architecture->name);
  writer.add_string("general.name", config.name);
  Keys keys(config.architecture->name, writer);
  keys.count("block_count", config.n_layers);
  keys.count("context_length", config.n_ctx);
  keys.count("embedding_length", config.n_embd);
  keys.count("feed_forward_length", config.n_ff);
  keys.count("attention.head_count", config.n_heads);
  keys.count("attention.head_count_kv", config.n_kv_heads);
  keys.count("attention.key_length", config.head_dim);
  keys.count("attention.value_length", config.head_dim);
  keys.real("attention.layer_norm_rms_epsilon", config.rms_eps);
  keys.count("rope.dimension_count", config.rot_dim);
  keys.real("rope.freq_base", config.rope.freq_base);
  write_scaling(config.rope, keys);
  keys.count("vocab_size", config.n_vocab);
  if (config.query_scale != 0) keys.real("attention.scale", config.query_scale);
  if (config.window > 0) keys.count("attention.sliding_window", config.window);
  if (config.full_every > 0) keys.count("attention.sliding_window_pattern", config.full_every);
  if (config.window_rope_base != 0) keys.real("rope.freq_base_swa", config.window_rope_base);
  if (config.n_experts == 0) return;
  keys.count("expert_count", config.n_experts);
  keys.count("expert_used_count", config.n_experts_used);
  keys.count("expert_feed_forward_length", config.n_ff);
  keys.boolean("expert_weights_norm", config.norm_expert_weights);
}

}  // namespace millrace
