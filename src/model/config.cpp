#include "model/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace millrace {
namespace {

struct Limit {
  std::string_view what;
  int64_t value;
  int64_t least;
  int64_t most;
};

Status check_limit(const Limit& limit) {
  if (limit.value >= limit.least && limit.value <= limit.most) return {};
  return error(Code::invalid_argument, "{} is {}, outside {} to {}", limit.what, limit.value,
               limit.least, limit.most);
}

}  // namespace

std::vector<float> llama3_factors(const Config& config) {
  const Llama3Scaling& s = config.llama3;
  std::vector<float> factors;
  for (int64_t i = 0; i < config.rot_dim / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(config.rot_dim);
    const double wave = 2 * std::numbers::pi * std::pow(config.rope.freq_base, exponent);
    const double turns = static_cast<double>(s.original_context) / wave;
    const double keep = std::clamp(
        (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / ((1 - keep) / s.factor + keep)));
  }
  return factors;
}

int64_t Config::window_of(int64_t layer) const {
  const bool is_full = full_every > 0 && layer % full_every == full_every - 1;
  return is_full ? 0 : window;
}

float Config::attention_scale() const {
  if (query_scale != 0) return static_cast<float>(query_scale);
  return static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim)));
}

RopeParameters rope_of(const Config& config, int64_t layer) {
  RopeParameters out{config.rot_dim, config.rope, {}};
  if (config.window_rope_base != 0 && config.window_of(layer) != 0)
    out.scaling = {.freq_base = config.window_rope_base};
  if (config.llama3.original_context > 0) out.factors = llama3_factors(config);
  return out;
}

std::string describe(const Config& c) {
  const rope::Scaling& r = c.rope;
  return fmt::format(
      "layers={} embd={} heads={} kv_heads={} head_dim={} ff={} vocab={} experts={} used={} "
      "norm_experts={} eps={:a} rot_dim={} order={} base={:a} scale={:a} ext={:a} attn={:a} "
      "fast={:a} slow={:a} orig_ctx={} llama3={:a},{:a},{:a},{} window={} full_every={} "
      "window_base={:a} norm_plus={:a} embedding_scale={:a} query_scale={:a}\n",
      c.n_layers, c.n_embd, c.n_heads, c.n_kv_heads, c.head_dim, c.n_ff, c.n_vocab, c.n_experts,
      c.n_experts_used, c.norm_expert_weights, c.rms_eps, c.rot_dim, static_cast<int>(c.rope_order),
      r.freq_base, r.freq_scale, r.ext_factor, r.attn_factor, r.beta_fast, r.beta_slow, r.orig_ctx,
      c.llama3.factor, c.llama3.low_freq_factor, c.llama3.high_freq_factor,
      c.llama3.original_context, c.window, c.full_every, c.window_rope_base, c.norm_plus,
      c.embedding_scale, c.query_scale);
}

Status validate(const Config& config) {
  const Limit limits[] = {
      {"the number of layers", config.n_layers, 1, 1024},
      {"the embedding width", config.n_embd, 32, 65536},
      {"the number of heads", config.n_heads, 1, 1024},
      {"the number of KV heads", config.n_kv_heads, 1, 1024},
      {"the head width", config.head_dim, 1, 256},
      {"the feed-forward width", config.n_ff, 32, 1 << 20},
      {"the vocabulary", config.n_vocab, 1, 1 << 22},
      {"the context length", config.n_ctx, 1, std::numeric_limits<int32_t>::max()},
      {"the number of experts", config.n_experts, 0, 4096},
      {"the number of experts used", config.n_experts_used, 0, config.n_experts},
      {"the rotated part of a head", config.rot_dim, 2, config.head_dim},
      {"the attention window", config.window, 0, std::numeric_limits<int32_t>::max()},
      {"the number of layers to one that sees everything", config.full_every, 0, 1024},
  };
  for (const Limit& limit : limits)
    if (Status status = check_limit(limit); !status.ok()) return status;
  if (config.n_heads % config.n_kv_heads != 0)
    return error(Code::invalid_argument, "{} heads cannot share {} KV heads", config.n_heads,
                 config.n_kv_heads);
  if (config.rot_dim % 2 != 0)
    return error(Code::invalid_argument, "the rotated part of a head is {}, which is odd",
                 config.rot_dim);
  if (!(config.rms_eps > 0 && config.rms_eps < 1))
    return error(Code::invalid_argument, "the norm's epsilon is {}", config.rms_eps);
  return {};
}

}  // namespace millrace
