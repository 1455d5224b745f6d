// What a model is, read from its file: the shapes and constants its architecture needs, whatever
// format they came in. Every number here was checked against the limits below before anything was
// allocated from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "exec/step.h"
#include "files/model_file.h"
#include "kernels/rope/args.h"
#include "kernels/rope/frequencies.h"

namespace millrace {

struct Architecture;  // architecture.h

// Llama 3's scaling as Hugging Face's config.json states it; GGUF stores the factors themselves in
// the tensor rope_freqs.weight.
struct Llama3Scaling {
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_context = 0;  // 0: not scaled this way
};

struct Config {
  const Architecture* architecture = nullptr;
  std::string name;      // as its publisher calls it; may be empty
  int64_t n_layers = 0;  // blocks
  int64_t n_embd = 0;    // width of the residual stream
  int64_t n_heads = 0;   // query heads, a multiple of n_kv_heads
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;  // at most 256
  int64_t n_ff = 0;      // width of the dense feed-forward part; of one expert in an MoE
  int64_t n_vocab = 0;
  int64_t n_ctx = 0;      // context length it was made for
  int64_t n_experts = 0;  // 0: dense
  int64_t n_experts_used = 0;
  bool norm_expert_weights = true;  // the used experts' weights are scaled to sum to 1
  float rms_eps = 1e-5f;
  int64_t rot_dim = 0;
  rope::PairOrder rope_order = rope::PairOrder::neox;  // GGUF's llama is stored for `normal`
  rope::Scaling rope;
  Llama3Scaling llama3;
  int64_t window = 0;           // tokens that a row of a windowed layer sees; 0: no layer has one
  int64_t full_every = 0;       // of so many layers the last sees everything; 0: none does
  double window_rope_base = 0;  // of windowed layers; 0: as all
  float norm_plus = 0;          // added to the norms' weights as the file has them
  float embedding_scale = 1;
  double query_scale = 0;  // 0: 1 / sqrt(head_dim)

  // Of this layer; 0: it sees everything.
  int64_t window_of(int64_t layer) const;
  float attention_scale() const;
};

// By what Llama 3's scaling divides each pair's frequency: wave lengths well inside the original
// context stay, those beyond it are stretched by `factor`, and between the two the rule goes over
// smoothly.
std::vector<float> llama3_factors(const Config& config);

// What a model file says: the shapes and constants it runs with, or why it cannot run here.
Result<Config> read_config(const ModelFile& file);

// The rotary embedding of this layer.
RopeParameters rope_of(const Config& config, int64_t layer);

// Every number that a result depends on, by name.
std::string describe(const Config& config);

// Whether the numbers fit each other and the house's limits; the error names the one that does not.
Status validate(const Config& config);

}  // namespace millrace
