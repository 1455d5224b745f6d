#include "files/quant_type.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "tensor/format.h"

namespace millrace {
namespace {

using Mix = QuantType::Mix;

constexpr std::array<QuantType, 16> kTypes = {{
    {"f32", DType::f32, 0},
    {"f16", DType::f16, 1},
    {"bf16", DType::bf16, 32},
    {"q8_0", DType::q8_0, 7},
    {"q4_0", DType::q4_0, 2},
    {"q4_1", DType::q4_1, 3},
    {"q5_0", DType::q5_0, 8},
    {"q5_1", DType::q5_1, 9},
    {"q2_k", DType::q2_k, 10},
    {"q4_k_s", DType::q4_k, 14, Mix::small},
    {"q4_k_m", DType::q4_k, 15, Mix::medium},
    {"q5_k_s", DType::q5_k, 16},
    {"q5_k_m", DType::q5_k, 17, Mix::medium},
    {"q6_k", DType::q6_k, 18},
    {"iq4_nl", DType::iq4_nl, 25},
    {"iq4_xs", DType::iq4_xs, 30},
}};

// The number behind "blk."; -1 when there is none.
int64_t layer_of(std::string_view tensor) {
  int64_t layer = -1;
  if (tensor.starts_with("blk."))
    (void)std::from_chars(tensor.data() + 4, tensor.data() + tensor.size(), layer);
  return layer;
}

// The first and last eighth of the layers and every third between: where more bits pay.
bool deserves_more_bits(int64_t layer, int64_t n_layers) {
  const int64_t eighth = n_layers / 8;
  return layer < eighth || layer >= 7 * n_layers / 8 || (layer - eighth) % 3 == 2;
}

bool is_iq4(DType type) {
  return type == DType::iq4_nl || type == DType::iq4_xs;
}

DType attn_v_type(const QuantType& type, const QuantModel& model, int64_t layer) {
  if (type.mix == Mix::medium && deserves_more_bits(layer, model.n_layers)) return DType::q6_k;
  if (type.mix == Mix::small && layer < 4) return DType::q5_k;
  if (type.base == DType::q2_k) return model.n_gqa >= 4 ? DType::q4_k : DType::q3_k;
  if (is_iq4(type.base) && model.n_gqa >= 4) return DType::q5_k;
  return type.base;
}

DType ffn_down_type(const QuantType& type, const QuantModel& model, int64_t layer) {
  const bool early = layer < model.n_layers / 8;
  if (type.mix == Mix::medium && deserves_more_bits(layer, model.n_layers)) return DType::q6_k;
  if ((type.mix == Mix::small || is_iq4(type.base)) && early) return DType::q5_k;
  if (type.base == DType::q2_k) return DType::q3_k;
  return type.base;
}

DType output_type(const QuantType& type) {
  return is_block_format(type.base) && type.base != DType::q8_0 ? DType::q6_k : type.base;
}

DType wanted_type(const QuantType& type, const QuantModel& model, std::string_view tensor) {
  const bool is_output = tensor == (model.has_output ? "output.weight" : "token_embd.weight");
  if (is_output) return output_type(type);
  if (!is_block_format(type.base)) return type.base;
  const int64_t layer = layer_of(tensor);
  if (tensor.find("attn_v.weight") != tensor.npos) return attn_v_type(type, model, layer);
  if (tensor.find("ffn_down") != tensor.npos) return ffn_down_type(type, model, layer);
  if (tensor.find("attn_output.weight") != tensor.npos && type.base == DType::q2_k)
    return DType::q3_k;
  return type.base;
}

}  // namespace

std::span<const QuantType> quant_types() {
  return kTypes;
}

std::string quant_type_names() {
  std::string names;
  for (const QuantType& type : kTypes) names.append(names.empty() ? "" : ", ").append(type.name);
  return names;
}

Result<QuantType> quant_type_named(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const QuantType& type : kTypes)
    if (type.name == lower) return type;
  return error(Code::invalid_argument, "no type '{}'; the types are {}", name, quant_type_names());
}

bool is_quantised(std::string_view tensor, const std::vector<int64_t>& shape) {
  return shape.size() >= 2 && tensor.ends_with(".weight") && !tensor.ends_with("_norm.weight") &&
         tensor.find("ffn_gate_inp") == tensor.npos;
}

DType quantised_type(const QuantType& type, const QuantModel& model, std::string_view tensor,
                     const std::vector<int64_t>& shape) {
  DType wanted = wanted_type(type, model, tensor);
  while (shape.back() % format_of(wanted).block_elems != 0) wanted = format_of(wanted).fallback;
  return wanted;
}

}  // namespace millrace
