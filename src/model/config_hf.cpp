#include "model/config_hf.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>

#include "base/utf8.h"
#include "files/json.h"
#include "model/architecture.h"

namespace millrace {
namespace {

using Json = nlohmann::json;

Status read_architecture(const JsonFields& fields, Config& config) {
  MILLRACE_ASSIGN(const std::string type, fields.string_or("model_type", ""));
  const auto known = architecture_of_type(type);
  if (!known.ok()) return fields.unsupported("model_type", known.status().message());
  config.architecture = known.value();
  const Json* classes = fields.find("architectures");
  if (classes == nullptr || !classes->is_array() || classes->empty() ||
      !classes->front().is_string())
    return {};
  const std::string name = classes->front().get<std::string>();
  if (name.ends_with("ForCausalLM")) return {};
  return fields.unsupported(
      "architectures", fmt::format("is {}, which does not predict tokens", printable(name, 80)));
}

Status read_shape(const JsonFields& fields, Config& config) {
  MILLRACE_ASSIGN(config.n_layers, fields.integer("num_hidden_layers"));
  MILLRACE_ASSIGN(config.n_embd, fields.integer("hidden_size"));
  MILLRACE_ASSIGN(config.n_heads, fields.integer("num_attention_heads"));
  MILLRACE_ASSIGN(config.n_kv_heads, fields.integer_or("num_key_value_heads", config.n_heads));
  MILLRACE_ASSIGN(config.n_ff, fields.integer("intermediate_size"));
  MILLRACE_ASSIGN(config.n_vocab, fields.integer("vocab_size"));
  MILLRACE_ASSIGN(config.n_ctx, fields.integer("max_position_embeddings"));
  if (config.n_heads < 1) return fields.bad("num_attention_heads", "is not positive");
  const int64_t own = config.architecture->hf_head_dim;
  const int64_t usual = own > 0 ? own : config.n_embd / config.n_heads;
  MILLRACE_ASSIGN(config.head_dim, fields.integer_or("head_dim", usual));
  MILLRACE_ASSIGN(const double eps, fields.real_or("rms_norm_eps", 1e-6));
  config.rms_eps = static_cast<float>(eps);
  const std::string wanted(config.architecture->activation);
  MILLRACE_ASSIGN(const std::string older, fields.string_or("hidden_act", wanted));
  MILLRACE_ASSIGN(const std::string act, fields.string_or("hidden_activation", older));
  if (act != wanted && !(act == "swish" && wanted == "silu"))
    return fields.unsupported(
        "hidden_act", fmt::format("is '{}'; only {} is supported", printable(act, 80), wanted));
  for (const char* softcap : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    MILLRACE_ASSIGN(const double value, fields.real_or(softcap, 0));
    if (value != 0) return fields.unsupported(softcap, "is set, which is not supported");
  }
  MILLRACE_ASSIGN(const bool both_ways, fields.boolean_or("use_bidirectional_attention", false));
  if (both_ways)
    return fields.unsupported("use_bidirectional_attention",
                              "is true: the model does not predict tokens");
  MILLRACE_ASSIGN(const bool causal, fields.boolean_or("is_causal", true));
  if (!causal)
    return fields.unsupported("is_causal", "is false: the model does not predict tokens");
  return {};
}

Status read_experts(const JsonFields& fields, Config& config) {
  if (!config.architecture->has_experts) return {};
  const bool local = fields.find("num_experts") == nullptr;
  MILLRACE_ASSIGN(config.n_experts, fields.integer(local ? "num_local_experts" : "num_experts"));
  MILLRACE_ASSIGN(config.n_experts_used, fields.integer("num_experts_per_tok"));
  MILLRACE_ASSIGN(config.n_ff, fields.integer("moe_intermediate_size"));
  MILLRACE_ASSIGN(config.norm_expert_weights, fields.boolean_or("norm_topk_prob", false));
  MILLRACE_ASSIGN(const int64_t step, fields.integer_or("decoder_sparse_step", 1));
  const Json* dense = fields.find("mlp_only_layers");
  if (step != 1 || (dense != nullptr && !dense->empty()))
    return fields.unsupported("mlp_only_layers",
                              "or 'decoder_sparse_step' makes some layers dense");
  return {};
}

// Of layers by turns, how many to one that sees everything; refused where there is no such rule.
Status read_pattern(const JsonFields& fields, Config& config) {
  MILLRACE_ASSIGN(config.full_every, fields.integer_or("sliding_window_pattern", 6));
  const Json* types = fields.find("layer_types");
  if (types == nullptr || !types->is_array()) return {};
  const auto first = std::find(types->begin(), types->end(), "full_attention");
  config.full_every = first == types->end() ? 0 : first - types->begin() + 1;
  for (size_t i = 0; i < types->size(); ++i) {
    const bool is_full = config.window_of(static_cast<int64_t>(i)) == 0;
    if ((*types)[i] != (is_full ? "full_attention" : "sliding_attention"))
      return fields.unsupported("layer_types", "follows no regular pattern");
  }
  return {};
}

Status read_window(const JsonFields& fields, Config& config) {
  const Windows windows = config.architecture->windows;
  MILLRACE_ASSIGN(const bool used,
                  fields.boolean_or("use_sliding_window", windows != Windows::none));
  MILLRACE_ASSIGN(const int64_t window, fields.integer_or("sliding_window", 0));
  if (!used || window == 0) return {};
  if (windows == Windows::none)
    return fields.unsupported("use_sliding_window",
                              "is true, which is not supported for this architecture");
  config.window = window;
  return windows == Windows::pattern ? read_pattern(fields, config) : Status();
}

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

Status read_yarn(const JsonFields& fields, double factor, Config& config) {
  rope::Scaling& rope = config.rope;
  rope.freq_scale = 1 / factor;
  rope.ext_factor = 1;
  MILLRACE_ASSIGN(rope.beta_fast, fields.real_or("beta_fast", 32));
  MILLRACE_ASSIGN(rope.beta_slow, fields.real_or("beta_slow", 1));
  MILLRACE_ASSIGN(rope.orig_ctx,
                  fields.integer_or("original_max_position_embeddings", config.n_ctx));
  MILLRACE_ASSIGN(const bool truncate, fields.boolean_or("truncate", true));
  if (!truncate) return fields.unsupported("truncate", "is false");
  MILLRACE_ASSIGN(const double mscale, fields.real_or("mscale", 0));
  MILLRACE_ASSIGN(const double mscale_all, fields.real_or("mscale_all_dim", 0));
  const double usual = mscale != 0 && mscale_all != 0
                           ? yarn_magnitude(factor, mscale) / yarn_magnitude(factor, mscale_all)
                           : yarn_magnitude(factor, 1);
  MILLRACE_ASSIGN(const double magnitude, fields.real_or("attention_factor", usual));
  rope.attn_factor = magnitude / (1 + 0.1 * std::log(factor));  // rope multiplies it by that again
  return {};
}

Status read_llama3(const JsonFields& fields, double factor, Config& config) {
  Llama3Scaling& llama3 = config.llama3;
  llama3.factor = factor;
  MILLRACE_ASSIGN(llama3.low_freq_factor, fields.real_or("low_freq_factor", 1));
  MILLRACE_ASSIGN(llama3.high_freq_factor, fields.real_or("high_freq_factor", 4));
  MILLRACE_ASSIGN(llama3.original_context, fields.integer("original_max_position_embeddings"));
  if (llama3.original_context < 1 || !(llama3.low_freq_factor > 0) ||
      !(llama3.high_freq_factor > llama3.low_freq_factor))
    return fields.bad("rope_type", "is llama3, but its factors contradict each other");
  return {};
}

// The object rope_scaling, or transformers 5's rope_parameters.
Status read_scaling(const JsonFields& fields, Config& config) {
  MILLRACE_ASSIGN(const std::string old_type, fields.string_or("type", "default"));
  MILLRACE_ASSIGN(const std::string type, fields.string_or("rope_type", old_type));
  // "dynamic" scales only beyond the context the model was made for, which is not offered.
  if (type == "default" || type == "dynamic") return {};
  MILLRACE_ASSIGN(const double factor, fields.real_or("factor", 1));
  if (!(factor >= 1) || !std::isfinite(factor)) return fields.bad("factor", "is less than 1");
  if (type == "yarn") return read_yarn(fields, factor, config);
  if (type == "llama3") return read_llama3(fields, factor, config);
  if (type != "linear")
    return fields.unsupported(
        "rope_type", fmt::format("is '{}'; supported are default, linear, dynamic, yarn and "
                                 "llama3",
                                 printable(type, 80)));
  config.rope.freq_scale = 1 / factor;
  return {};
}

Status read_rope(const JsonFields& fields, std::string_view file, Config& config) {
  config.rope_order = rope::PairOrder::neox;
  MILLRACE_ASSIGN(const double theta, fields.real_or("rope_theta", 10000));
  MILLRACE_ASSIGN(const double partial, fields.real_or("partial_rotary_factor", 1));
  static const Json kNone;
  const Json* now = fields.find("rope_parameters");
  const Json* scaling = now != nullptr ? now : fields.find("rope_scaling");
  const JsonFields all(scaling == nullptr ? kNone : *scaling, file);
  // transformers 5 gives one for each kind of layers.
  const Json* of_full = all.find("full_attention");
  const Json* of_window = all.find("sliding_attention");
  if ((of_full != nullptr || of_window != nullptr) &&
      config.architecture->windows != Windows::pattern)
    return fields.unsupported("rope_parameters", "differs between kinds of layers");
  if (of_window != nullptr) {
    MILLRACE_ASSIGN(config.window_rope_base, JsonFields(*of_window, file).real_or("rope_theta", 0));
  } else {
    MILLRACE_ASSIGN(config.window_rope_base, fields.real_or("rope_local_base_freq", 0));
  }
  const JsonFields inner(of_full != nullptr   ? *of_full
                         : scaling == nullptr ? kNone
                                              : *scaling,
                         file);
  MILLRACE_ASSIGN(config.rope.freq_base, inner.real_or("rope_theta", theta));
  MILLRACE_ASSIGN(const double inner_partial, inner.real_or("partial_rotary_factor", partial));
  if (!(inner_partial > 0 && inner_partial <= 1))
    return inner.bad("partial_rotary_factor", "is not in 0 to 1");
  config.rot_dim = static_cast<int64_t>(static_cast<double>(config.head_dim) * inner_partial);
  return read_scaling(inner, config);
}

const TensorView* find_tensor(const SafetensorsDir& dir, std::string_view name) {
  const auto tensors = dir.tensors();
  const auto at = std::find_if(tensors.begin(), tensors.end(),
                               [&](const TensorView& tensor) { return tensor.name == name; });
  return at == tensors.end() ? nullptr : &*at;
}

Status check_ends(const SafetensorsDir& dir, Config& config) {
  const TensorView* embedding = find_tensor(dir, "token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2 ||
      embedding->shape[1] != config.n_embd || embedding->shape[0] < config.n_vocab)
    return error(Code::corrupt,
                 "{}: tensor 'model.embed_tokens.weight' of {} rows of {} is missing",
                 printable(dir.directory()), config.n_vocab, config.n_embd);
  config.n_vocab = embedding->shape[0];
  if (ties_embeddings(dir).value_or(true) || find_tensor(dir, "output.weight") != nullptr)
    return {};
  return error(Code::corrupt, "{}: 'lm_head.weight' is missing, and 'tie_word_embeddings' is false",
               printable(dir.directory()));
}

}  // namespace

Result<Config> config_from_json(std::string_view text, std::string_view file) {
  MILLRACE_ASSIGN(const Json json, parse_json(text, file));
  const JsonFields fields(json, file);
  Config config;
  MILLRACE_TRY(read_architecture(fields, config));
  if (fields.find("quantization_config") != nullptr)
    return fields.unsupported(
        "quantization_config",
        "is present: quantised safetensors are not supported; F32, F16 and BF16 are");
  MILLRACE_TRY(read_shape(fields, config));
  MILLRACE_TRY(read_experts(fields, config));
  MILLRACE_TRY(read_rope(fields, file, config));
  MILLRACE_TRY(read_window(fields, config));
  MILLRACE_ASSIGN(const double query, fields.real_or("query_pre_attn_scalar", 0));
  if (query > 0) config.query_scale = 1 / std::sqrt(query);
  if (config.architecture->complete != nullptr)
    MILLRACE_TRY(config.architecture->complete(/*is_gguf=*/false, config));
  const Status status = validate(config);
  if (!status.ok()) return error(status.code(), "{}: {}", printable(file), status.message());
  return config;
}

Result<Config> read_config(const SafetensorsDir& dir) {
  const std::filesystem::path file = std::filesystem::path(dir.directory()) / "config.json";
  MILLRACE_ASSIGN(const std::string text, dir.text("config.json"));
  MILLRACE_ASSIGN(Config config, config_from_json(text, file.string()));
  config.name = printable(std::filesystem::absolute(file).parent_path().filename().string(), 200);
  if (!dir.strange_tensor().empty())
    return error(Code::unsupported, "{}: {}; supported are F32, F16 and BF16",
                 printable(dir.directory()), dir.strange_tensor());
  MILLRACE_TRY(check_ends(dir, config));
  return config;
}

}  // namespace millrace
