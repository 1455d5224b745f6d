#include "model/architecture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/utf8.h"

namespace millrace {

void build_llama(StepBuilder& b);
void build_qwen2(StepBuilder& b);
void build_qwen3(StepBuilder& b);
void build_qwen3_moe(StepBuilder& b);
void build_gemma3(StepBuilder& b);

namespace {

constexpr std::string_view kLlamaTypes[] = {"llama", "mistral"};
constexpr std::string_view kQwen2Types[] = {"qwen2"};
constexpr std::string_view kQwen3Types[] = {"qwen3"};
constexpr std::string_view kQwen3MoeTypes[] = {"qwen3_moe"};
constexpr std::string_view kGemma3Types[] = {"gemma3_text"};

// Four norms a layer.
constexpr HfName kGemma3Names[] = {{"post_attention_layernorm", "post_attention_norm"},
                                   {"pre_feedforward_layernorm", "ffn_norm"},
                                   {"post_feedforward_layernorm", "post_ffw_norm"}};

// A directory has the norms' weights less one, GGUF has them whole. Of the 27B model the scale of
// queries is that of width / heads, which GGUF does not say.
Status complete_gemma3(bool is_gguf, Config& config) {
  config.norm_plus = is_gguf ? 0.0f : 1.0f;
  config.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config.n_embd)));
  if (config.full_every == 0) config.full_every = 6;
  if (config.window_rope_base == 0) config.window_rope_base = 10000;
  if (is_gguf && config.query_scale == 0 && config.n_layers == 62)
    config.query_scale =
        1 / std::sqrt(static_cast<double>(config.n_embd) / static_cast<double>(config.n_heads));
  return {};
}

constexpr std::array kArchitectures = {
    Architecture{.name = "llama",
                 .hf_types = kLlamaTypes,
                 .build = build_llama,
                 .windows = Windows::all,
                 .pairs_neighbours = true},
    Architecture{.name = "qwen2", .hf_types = kQwen2Types, .build = build_qwen2},
    Architecture{
        .name = "qwen3", .hf_types = kQwen3Types, .build = build_qwen3, .hf_head_dim = 128},
    Architecture{.name = "qwen3moe",
                 .hf_types = kQwen3MoeTypes,
                 .build = build_qwen3_moe,
                 .has_experts = true},
    Architecture{.name = "gemma3",
                 .hf_types = kGemma3Types,
                 .build = build_gemma3,
                 .hf_names = kGemma3Names,
                 .windows = Windows::pattern,
                 .hf_head_dim = 256,
                 .activation = "gelu_pytorch_tanh",
                 .complete = complete_gemma3},
};

bool has_type(const Architecture& architecture, std::string_view type) {
  return std::find(architecture.hf_types.begin(), architecture.hf_types.end(), type) !=
         architecture.hf_types.end();
}

std::span<const HfName> hf_names_of(std::string_view model_type) {
  const auto found = architecture_of_type(model_type);
  return found.ok() ? found.value()->hf_names : std::span<const HfName>();
}

}  // namespace

std::span<const Architecture> architectures() {
  return kArchitectures;
}

const Architecture& llama_architecture() {
  return kArchitectures[0];
}

Result<const Architecture*> architecture_named(std::string_view name) {
  std::string names;
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) return &architecture;
    names.append(names.empty() ? "" : ", ").append(architecture.name);
  }
  return error(Code::unsupported, "architecture '{}' is not supported; these are: {}",
               printable(name, 80), names);
}

Result<const Architecture*> architecture_of_type(std::string_view type) {
  std::string types;
  for (const Architecture& architecture : kArchitectures) {
    if (has_type(architecture, type)) return &architecture;
    for (const std::string_view name : architecture.hf_types)
      types.append(types.empty() ? "" : ", ").append(name);
  }
  return error(Code::unsupported, "is '{}', which is not supported; these are: {}",
               printable(type, 80), types);
}

Result<ModelFile> open_model_file(const std::string& path) {
  return ModelFile::open(path, hf_names_of);
}

StepSpec build_step(const Config& config, const HasTensor& has) {
  StepBuilder builder(config, has);
  config.architecture->build(builder);
  return builder.take();
}

StepSpec build_step(const Config& config, const ModelFile& file) {
  return build_step(config, [&](const std::string& name) { return file.find(name) != nullptr; });
}

}  // namespace millrace
