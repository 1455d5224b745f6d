#include "tensor/format.h"

#include <array>

#include "base/check.h"

namespace millrace {
namespace {

constexpr std::array<Format, 19> kFormats = {{
    {"f32", 1, 4},      {"f16", 1, 2},        {"bf16", 1, 2},     {"i32", 1, 4},
    {"i8", 1, 1},       {"u8", 1, 1},         {"q8_0", 32, 34},   {"q4_0", 32, 18},
    {"q4_1", 32, 20},   {"q5_0", 32, 22},     {"q5_1", 32, 24},   {"q2_k", 256, 84},
    {"q3_k", 256, 110}, {"q4_k", 256, 144},   {"q5_k", 256, 176}, {"q6_k", 256, 210},
    {"iq4_nl", 32, 18}, {"iq4_xs", 256, 136}, {"q8_row", 32, 40},
}};

}  // namespace

const Format& format_of(DType type) {
  const auto i = static_cast<size_t>(type);
  MILLRACE_CHECK(i < kFormats.size(), "no such DType: {}", i);
  return kFormats[i];
}

std::optional<DType> dtype_named(std::string_view name) {
  for (size_t i = 0; i < kFormats.size(); ++i)
    if (kFormats[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

size_t bytes_of(DType type, int64_t elems) {
  const Format& f = format_of(type);
  MILLRACE_CHECK(elems >= 0 && elems % f.block_elems == 0, "{} elements of {} are not whole blocks",
                 elems, f.name);
  return static_cast<size_t>(elems / f.block_elems) * static_cast<size_t>(f.block_bytes);
}

}  // namespace millrace
