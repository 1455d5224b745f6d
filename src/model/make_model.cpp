#include "model/make_model.h"

#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "files/gguf_write.h"
#include "files/random_weights.h"
#include "model/architecture.h"
#include "model/config_gguf.h"
#include "model/make_vocab.h"

namespace millrace {
namespace {

using V = VocabKind;

constexpr std::array<ModelShape, 11> kShapes = {{
    {"smollm2-135m", "SmolLM2 135M shapes", "llama", V::smollm2, 30, 576, 9, 3, 64, 1536, 49152,
     8192, 1e5, 1e-5f, true},
    {"llama-3.2-1b", "Llama 3.2 1B shapes", "llama", V::llama3, 16, 2048, 32, 8, 64, 8192, 128256,
     131072, 5e5, 1e-5f, true, true},
    {"qwen3-0.6b", "Qwen3 0.6B shapes", "qwen3", V::qwen, 28, 1024, 16, 8, 128, 3072, 151936, 40960,
     1e6, 1e-6f, true},
    {"qwen3-4b", "Qwen3 4B shapes", "qwen3", V::qwen, 36, 2560, 32, 8, 128, 9728, 151936, 40960,
     1e6, 1e-6f, true},
    {"qwen3-30b-a3b", "Qwen3 30B A3B shapes", "qwen3moe", V::qwen, 48, 2048, 32, 4, 128, 768,
     151936, 40960, 1e6, 1e-6f, false, false, 128, 8},
    {"tiny-llama", "Tiny llama", "llama", V::tiny, 2, 256, 4, 2, 64, 512, 512, 512, 1e4, 1e-5f,
     false, true},
    {"tiny-qwen2", "Tiny qwen2", "qwen2", V::tiny, 2, 256, 4, 2, 64, 512, 512, 512, 1e6, 1e-6f,
     true},
    {"tiny-qwen3", "Tiny qwen3", "qwen3", V::tiny, 2, 256, 4, 2, 128, 512, 512, 512, 1e6, 1e-6f,
     true},
    {"tiny-qwen3moe", "Tiny qwen3moe", "qwen3moe", V::tiny, 2, 256, 4, 2, 128, 256, 512, 512, 1e6,
     1e-6f, true, false, 8, 2},
    {"gemma3-1b", "Gemma 3 1B shapes", "gemma3", V::tiny, 26, 1152, 4, 1, 256, 6912, 262144, 32768,
     1e6, 1e-6f, true, false, 0, 0, 512},
    {"tiny-gemma3", "Tiny gemma3", "gemma3", V::tiny, 7, 256, 4, 2, 64, 512, 512, 512, 1e6, 1e-6f,
     true, false, 0, 0, 48},
}};

constexpr std::string_view kChatTemplate =
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] "
    "}}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

struct VocabRules {
  SpecialTokens special;
  std::string_view pre, bos, eos;
  bool add_bos;
};

VocabRules rules_of(VocabKind kind) {
  const std::vector<std::string_view> chatml = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  switch (kind) {
    case VocabKind::smollm2:
      return {{chatml, true, 0}, "smollm", "<|im_start|>", "<|im_end|>", false};
    case VocabKind::qwen:  // 151643 words, as many special and unused ones as fill it up
      return {{chatml, false, 290}, "qwen2", "<|endoftext|>", "<|im_end|>", false};
    case VocabKind::llama3:  // 128000 words
      return {{{"<|begin_of_text|>", "<|end_of_text|>", "<|im_start|>", "<|im_end|>"}, false, 252},
              "llama-bpe",
              "<|begin_of_text|>",
              "<|im_end|>",
              true};
    case VocabKind::tiny:
      break;
  }
  return {{chatml, false, 5}, "gpt-2", "<|endoftext|>", "<|im_end|>", false};
}

void add_vocab(GgufWriter& writer, const ModelShape& shape) {
  const VocabRules rules = rules_of(shape.vocab);
  const MadeVocab vocab = make_vocab(shape.n_vocab, rules.special);
  const auto id = [&](std::string_view token) { return static_cast<uint32_t>(vocab.id_of(token)); };
  writer.add_string("tokenizer.ggml.model", "gpt2");
  writer.add_string("tokenizer.ggml.pre", rules.pre);
  writer.add_strings("tokenizer.ggml.tokens", vocab.tokens);
  writer.add_i32s("tokenizer.ggml.token_type", vocab.types);
  writer.add_strings("tokenizer.ggml.merges", vocab.merges);
  writer.add_u32("tokenizer.ggml.bos_token_id", id(rules.bos));
  writer.add_u32("tokenizer.ggml.eos_token_id", id(rules.eos));
  writer.add_bool("tokenizer.ggml.add_bos_token", rules.add_bos);
  writer.add_string("tokenizer.chat_template", kChatTemplate);
}

Config config_of(const ModelShape& s) {
  Config config;
  config.architecture = architecture_named(s.architecture).value();
  config.name = s.title;
  config.n_layers = s.n_layers;
  config.n_embd = s.n_embd;
  config.n_heads = s.n_heads;
  config.n_kv_heads = s.n_kv_heads;
  config.head_dim = config.rot_dim = s.head_dim;
  config.n_ff = s.n_ff;
  config.n_vocab = s.n_vocab;
  config.n_ctx = s.n_ctx;
  config.n_experts = s.n_experts;
  config.n_experts_used = s.n_experts_used;
  config.rms_eps = s.rms_eps;
  config.rope.freq_base = s.rope_base;
  config.window = s.window;
  if (config.architecture->complete != nullptr)
    MILLRACE_CHECK(config.architecture->complete(true, config).ok(), "{}", s.name);
  if (s.llama3_rope) config.llama3 = {32, 1, 4, 8192};
  return config;
}

void add_config(GgufWriter& writer, const ModelShape& shape, const QuantType& type) {
  write_config(config_of(shape), writer);
  writer.add_string("general.description", "random weights: for measuring, not for talking to");
  writer.add_u32("general.quantization_version", 2);
  writer.add_u32("general.file_type", type.file_type);
}

// Lists the tensors that the architecture's step reads, with their deviations.
class Planner {
 public:
  Planner(const ModelShape& shape, const QuantType& type)
      : s_(shape),
        type_(type),
        model_{shape.n_layers, !shape.tied, shape.n_heads / shape.n_kv_heads} {}

  void plan() {
    const Config config = config_of(s_);
    const StepSpec spec = build_step(config, [&](const std::string& name) {
      return (name == "output.weight" && !s_.tied) ||
             (name == "rope_freqs.weight" && s_.llama3_rope);
    });
    for (const WeightRef& ref : spec.weights)
      if (!ref.name.empty() && named_.insert(ref.name).second) add(ref);
  }

  // Instead of a deviation: filled with ones; filled with the rope factors.
  static constexpr float kOnes = -1, kRopeFactors = -2;

  std::vector<TensorPlan> tensors;
  std::vector<float> deviations;

 private:
  void add(const WeightRef& ref) {
    if (ref.form == WeightForm::turns)
      return add(ref.name, DType::f32, {s_.head_dim / 2}, kRopeFactors);
    if (ref.form != WeightForm::vector) return add_matrix(ref.name, ref.shape);
    add(ref.name, DType::f32, ref.shape, ref.name.ends_with(".bias") ? 0.1f : kOnes);
  }
  void add(const std::string& name, DType type, const std::vector<int64_t>& shape,
           float deviation) {
    tensors.push_back({name, type, shape});
    deviations.push_back(deviation);
  }
  // Outputs as large as inputs. What is added to the residual stream is smaller, so that the sum
  // over all layers stays of that size.
  void add_matrix(const std::string& name, const std::vector<int64_t>& shape) {
    const bool to_residual =
        name.find(".attn_output.") != name.npos || name.find(".ffn_down") != name.npos;
    double deviation = 1 / std::sqrt(static_cast<double>(shape.back()));
    if (to_residual) deviation /= std::sqrt(2.0 * static_cast<double>(s_.n_layers));
    const DType type =
        is_quantised(name, shape) ? quantised_type(type_, model_, name, shape) : DType::f32;
    add(name, type, shape, static_cast<float>(deviation));
  }

  const ModelShape& s_;
  const QuantType& type_;
  const QuantModel model_;
  std::set<std::string> named_;
};

class Filler {
 public:
  Filler(const ModelShape& shape, const Planner& planner, uint64_t seed)
      : planner_(planner), seed_(seed), rope_factors_(llama3_factors(config_of(shape))) {}

  void operator()(const RowRange& rows, std::byte* out) const {
    const TensorPlan& tensor = planner_.tensors[rows.tensor];
    const float deviation = planner_.deviations[rows.tensor];
    const int64_t k = tensor.shape.back();
    if (deviation == Planner::kOnes) return put(std::vector<float>(static_cast<size_t>(k), 1), out);
    if (deviation == Planner::kRopeFactors) return put(rope_factors_, out);
    for (int64_t r = 0; r < rows.n; ++r)
      fill_random(tensor.type,
                  {seed_, rows.tensor, static_cast<uint64_t>(rows.first + r), deviation},
                  out + static_cast<size_t>(r) * tensor.row_bytes(), k);
  }

 private:
  static void put(const std::vector<float>& values, std::byte* out) {
    std::memcpy(out, values.data(), values.size() * sizeof(float));
  }
  const Planner& planner_;
  const uint64_t seed_;
  const std::vector<float> rope_factors_;
};

int64_t n_elems(const TensorPlan& tensor) {
  return tensor.n_rows() * tensor.shape.back();
}

}  // namespace

std::span<const ModelShape> model_shapes() {
  return kShapes;
}

std::string model_shape_names() {
  std::string names;
  for (const ModelShape& shape : kShapes)
    names.append(names.empty() ? "" : ", ").append(shape.name);
  return names;
}

Result<ModelShape> model_shape_named(std::string_view name) {
  for (const ModelShape& shape : kShapes)
    if (shape.name == name) return shape;
  return error(Code::invalid_argument, "no shapes of '{}'; there are: {}", name,
               model_shape_names());
}

Result<MadeModel> make_model(const ModelShape& shape, const std::string& out,
                             const MakeModelOptions& options) {
  GgufWriter writer;
  add_config(writer, shape, options.type);
  add_vocab(writer, shape);
  Planner planner(shape, options.type);
  planner.plan();
  MadeModel made;
  for (const TensorPlan& tensor : planner.tensors) {
    made.n_parameters += n_elems(tensor);
    writer.add_tensor(tensor);
  }
  made.tensor_bytes = writer.data_bytes();
  MILLRACE_TRY(writer.begin(out));
  MILLRACE_TRY(stream_tensors(writer, Filler(shape, planner, options.seed), options.stream));
  MILLRACE_TRY(writer.finish());
  return made;
}

}  // namespace millrace
