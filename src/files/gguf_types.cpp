#include "files/gguf_types.h"

#include <fmt/format.h>

#include <array>

#include "base/check.h"
#include "tensor/format.h"

namespace millrace {
namespace {

struct ValueType {
  std::string_view name;
  size_t bytes;
};

constexpr std::array<ValueType, kGgufTypes> kValueTypes = {{
    {"u8", 1},
    {"i8", 1},
    {"u16", 2},
    {"i16", 2},
    {"u32", 4},
    {"i32", 4},
    {"f32", 4},
    {"bool", 1},
    {"string", 0},
    {"array", 0},
    {"u64", 8},
    {"i64", 8},
    {"f64", 8},
}};

// Ids 4, 5, 31 to 33 and 36 to 38 were given up by the format.
constexpr GgufTensorType kTensorTypes[] = {
    {0, "f32", 1, 4},         {1, "f16", 1, 2},         {2, "q4_0", 32, 18},
    {3, "q4_1", 32, 20},      {6, "q5_0", 32, 22},      {7, "q5_1", 32, 24},
    {8, "q8_0", 32, 34},      {9, "q8_1", 32, 36},      {10, "q2_k", 256, 84},
    {11, "q3_k", 256, 110},   {12, "q4_k", 256, 144},   {13, "q5_k", 256, 176},
    {14, "q6_k", 256, 210},   {15, "q8_k", 256, 292},   {16, "iq2_xxs", 256, 66},
    {17, "iq2_xs", 256, 74},  {18, "iq3_xxs", 256, 98}, {19, "iq1_s", 256, 50},
    {20, "iq4_nl", 32, 18},   {21, "iq3_s", 256, 110},  {22, "iq2_s", 256, 82},
    {23, "iq4_xs", 256, 136}, {24, "i8", 1, 1},         {25, "i16", 1, 2},
    {26, "i32", 1, 4},        {27, "i64", 1, 8},        {28, "f64", 1, 8},
    {29, "iq1_m", 256, 56},   {30, "bf16", 1, 2},       {34, "tq1_0", 256, 54},
    {35, "tq2_0", 256, 66},   {39, "mxfp4", 32, 17},    {40, "nvfp4", 64, 36},
};

}  // namespace

std::string_view name_of(GgufType type) {
  const auto i = static_cast<size_t>(type);
  MILLRACE_CHECK(i < kValueTypes.size(), "no such GgufType: {}", i);
  return kValueTypes[i].name;
}

size_t gguf_type_bytes(GgufType type) {
  const auto i = static_cast<size_t>(type);
  MILLRACE_CHECK(i < kValueTypes.size(), "no such GgufType: {}", i);
  return kValueTypes[i].bytes;
}

const GgufTensorType* gguf_tensor_type(uint32_t id) {
  for (const GgufTensorType& type : kTensorTypes)
    if (type.id == id) return &type;
  return nullptr;
}

std::string gguf_tensor_type_name(uint32_t id) {
  const GgufTensorType* type = gguf_tensor_type(id);
  return type != nullptr ? std::string(type->name) : fmt::format("unknown type {}", id);
}

std::optional<DType> dtype_of_gguf(uint32_t id) {
  const GgufTensorType* type = gguf_tensor_type(id);
  return type != nullptr ? dtype_named(type->name) : std::nullopt;
}

std::optional<uint32_t> gguf_id_of(DType type) {
  for (const GgufTensorType& known : kTensorTypes)
    if (known.name == name_of(type)) return known.id;
  return std::nullopt;
}

}  // namespace millrace
