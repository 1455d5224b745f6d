#include "files/gguf_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

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

// What no DType covers. Ids 4, 5, 31 to 33 and 36 to 38 were given up by the format.
constexpr GgufTensorType kOtherTypes[] = {
    {9, "q8_1", 32, 36},     {15, "q8_k", 256, 292},   {16, "iq2_xxs", 256, 66},
    {17, "iq2_xs", 256, 74}, {18, "iq3_xxs", 256, 98}, {19, "iq1_s", 256, 50},
    {21, "iq3_s", 256, 110}, {22, "iq2_s", 256, 82},   {25, "i16", 1, 2},
    {27, "i64", 1, 8},       {28, "f64", 1, 8},        {29, "iq1_m", 256, 56},
    {34, "tq1_0", 256, 54},  {35, "tq2_0", 256, 66},   {39, "mxfp4", 32, 17},
    {40, "nvfp4", 64, 36},
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

std::optional<GgufTensorType> gguf_tensor_type(uint32_t id) {
  if (const auto type = dtype_of_gguf(id)) {
    const Format& f = format_of(*type);
    return GgufTensorType{id, f.name, f.block_elems, f.block_bytes};
  }
  const auto* found = std::ranges::find(kOtherTypes, id, &GgufTensorType::id);
  return found == std::end(kOtherTypes) ? std::nullopt : std::optional(*found);
}

std::string gguf_tensor_type_name(uint32_t id) {
  const auto type = gguf_tensor_type(id);
  return type ? std::string(type->name) : fmt::format("unknown type {}", id);
}

std::optional<DType> dtype_of_gguf(uint32_t id) {
  for (const Format& f : formats())
    if (f.gguf_id == id) return f.type;
  return std::nullopt;
}

std::optional<uint32_t> gguf_id_of(DType type) {
  return format_of(type).gguf_id;
}

}  // namespace millrace
