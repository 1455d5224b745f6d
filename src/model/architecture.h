// The architectures that run here, a row each. Adding one touches two places: its row in
// architecture.cpp, which says how its files name and number things, and a file that builds its
// step. docs/how-to-add-an-architecture.md goes through it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "exec/step.h"
#include "files/hf_names.h"
#include "files/model_file.h"
#include "model/config.h"
#include "model/step_builder.h"

namespace millrace {

// Which layers see a window of the tokens alone, where a file gives one.
enum class Windows : unsigned char {
  none,     // a file that gives one is refused
  all,      // every layer
  pattern,  // all but every n-th
};

struct Architecture {
  std::string_view name;                       // GGUF's general.architecture
  std::span<const std::string_view> hf_types;  // config.json's model_type
  void (*build)(StepBuilder&) = nullptr;       // in a file of its own
  std::span<const HfName> hf_names = {};       // of tensors, beside llama's
  Windows windows = Windows::none;
  bool has_experts = false;
  bool pairs_neighbours = false;         // GGUF has q and k in the order of PairOrder::normal
  int64_t hf_head_dim = 0;               // where config.json gives none; 0: width / heads
  std::string_view activation = "silu";  // of config.json's hidden_act
  // Keys of its own; null: none.
  Status (*complete)(bool is_gguf, Config& config) = nullptr;
};

std::span<const Architecture> architectures();
Result<const Architecture*> architecture_named(std::string_view gguf_name);
Result<const Architecture*> architecture_of_type(std::string_view hf_type);
const Architecture& llama_architecture();

// ModelFile::open with the names of all architectures.
Result<ModelFile> open_model_file(const std::string& path);

// What one step of the model computes; it loads nothing.
StepSpec build_step(const Config& config, const HasTensor& has);
StepSpec build_step(const Config& config, const ModelFile& file);

}  // namespace millrace
