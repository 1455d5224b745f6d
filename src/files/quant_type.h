// What a model can be quantised to, by the names this ecosystem uses (q4_0, q4_k_m, ...): which
// tensors are quantised at all, and to what each. Follows llama.cpp without an importance matrix,
// so that a file made here has the types that one made there has.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"

namespace millrace {

struct QuantType {
  std::string_view name;
  DType base;          // of most weights
  uint32_t file_type;  // GGUF's general.file_type
  enum class Mix : uint8_t { none, small, medium } mix = Mix::none;
};

std::span<const QuantType> quant_types();
std::string quant_type_names();  // "f32, f16, ..."
Result<QuantType> quant_type_named(std::string_view name);

// What the choice for a tensor depends on beside its name and shape.
struct QuantModel {
  int64_t n_layers = 0;
  bool has_output = false;  // an output.weight of its own; else token_embd serves as it
  int64_t n_gqa = 1;        // query heads per KV head
};

// Norms, biases, routers and whatever has one dimension are kept in f32.
bool is_quantised(std::string_view tensor, const std::vector<int64_t>& shape);

// The type of a tensor that is quantised; what its rows do not divide into falls back to a type of
// smaller blocks.
DType quantised_type(const QuantType& type, const QuantModel& model, std::string_view tensor,
                     const std::vector<int64_t>& shape);

}  // namespace millrace
