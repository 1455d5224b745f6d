// Models of real architectures' exact shapes with random weights and a vocabulary of the exact
// size: for measuring speed and memory where no weights can be fetched, and for tests. They run,
// tokenize and chat like any model; what they say means nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "files/quant_type.h"
#include "files/tensor_stream.h"
#include "model/config.h"

namespace millrace {

enum class VocabKind : uint8_t { smollm2, qwen, llama3, tiny };

struct ModelShape {
  std::string_view name;          // as make-model takes it
  std::string_view title;         // for general.name
  std::string_view architecture;  // as architecture_named() takes it
  VocabKind vocab;
  int64_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_ff, n_vocab, n_ctx;
  double rope_base;
  float rms_eps;
  bool tied;                 // the output shares the embedding
  bool llama3_rope = false;  // brings rope_freqs.weight, factor 32 over 8192 tokens
  int64_t n_experts = 0, n_experts_used = 0;
  int64_t window = 0;
};

std::span<const ModelShape> model_shapes();
std::string model_shape_names();
Result<ModelShape> model_shape_named(std::string_view name);

struct MakeModelOptions {
  QuantType type;
  uint64_t seed = 0;
  StreamOptions stream;
};

struct MadeModel {
  size_t tensor_bytes = 0;
  int64_t n_parameters = 0;
};

Result<MadeModel> make_model(const ModelShape& shape, const std::string& out,
                             const MakeModelOptions& options);

}  // namespace millrace
