#include "tensor/format.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "tensor/codecs.h"

namespace millrace {
namespace {

using GgufId = std::optional<uint32_t>;

constexpr Format integer(DType type, std::string_view name, GgufId gguf_id, int bytes) {
  return {type, name, gguf_id, 1, bytes, Family::integer, type, type, nullptr};
}
constexpr Format real(DType type, std::string_view name, GgufId gguf_id, int bytes,
                      const Codec& codec) {
  return {type, name, gguf_id, 1, bytes, Family::real, DType::f32, type, &codec};
}
constexpr Format block(DType type, std::string_view name, GgufId gguf_id, int bytes,
                       const Codec& codec) {
  return {type, name, gguf_id, 32, bytes, Family::block, DType::q8_row, DType::f16, &codec};
}
constexpr Format superblock(DType type, std::string_view name, GgufId gguf_id, int bytes,
                            const Codec& codec, DType fallback) {
  return {type, name, gguf_id, 256, bytes, Family::superblock, DType::q8_row, fallback, &codec};
}
constexpr Format activation(DType type, std::string_view name, int elems, int bytes) {
  return {type, name, std::nullopt, elems, bytes, Family::activation, type, type, nullptr};
}

constexpr std::array kFormats = {
    real(DType::f32, "f32", 0, 4, codecs::f32),
    real(DType::f16, "f16", 1, 2, codecs::f16),
    real(DType::bf16, "bf16", 30, 2, codecs::bf16),
    integer(DType::i32, "i32", 26, 4),
    integer(DType::i8, "i8", 24, 1),
    integer(DType::u8, "u8", std::nullopt, 1),
    block(DType::q8_0, "q8_0", 8, 34, codecs::q8_0),
    block(DType::q4_0, "q4_0", 2, 18, codecs::q4_0),
    block(DType::q4_1, "q4_1", 3, 20, codecs::q4_1),
    block(DType::q5_0, "q5_0", 6, 22, codecs::q5_0),
    block(DType::q5_1, "q5_1", 7, 24, codecs::q5_1),
    superblock(DType::q2_k, "q2_k", 10, 84, codecs::q2_k, DType::iq4_nl),
    superblock(DType::q3_k, "q3_k", 11, 110, codecs::q3_k, DType::iq4_nl),
    superblock(DType::q4_k, "q4_k", 12, 144, codecs::q4_k, DType::q5_0),
    superblock(DType::q5_k, "q5_k", 13, 176, codecs::q5_k, DType::q5_1),
    superblock(DType::q6_k, "q6_k", 14, 210, codecs::q6_k, DType::q8_0),
    block(DType::iq4_nl, "iq4_nl", 20, 18, codecs::iq4_nl),
    superblock(DType::iq4_xs, "iq4_xs", 23, 136, codecs::iq4_xs, DType::iq4_nl),
    activation(DType::q8_row, "q8_row", 32, 40),
};

constexpr bool in_order() {
  for (size_t i = 0; i < kFormats.size(); ++i)
    if (static_cast<size_t>(kFormats[i].type) != i) return false;
  return true;
}
static_assert(in_order(), "one row per DType, in its order");

}  // namespace

std::span<const Format> formats() {
  return kFormats;
}

const Format& format_of(DType type) {
  const auto i = static_cast<size_t>(type);
  MILLRACE_CHECK(i < kFormats.size(), "no such DType: {}", i);
  return kFormats[i];
}

std::optional<DType> dtype_named(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &Format::name);
  return found == kFormats.end() ? std::nullopt : std::optional(found->type);
}

size_t bytes_of(DType type, int64_t elems) {
  const Format& f = format_of(type);
  MILLRACE_CHECK(elems >= 0 && elems % f.block_elems == 0, "{} elements of {} are not whole blocks",
                 elems, f.name);
  return static_cast<size_t>(elems / f.block_elems) * static_cast<size_t>(f.block_bytes);
}

}  // namespace millrace
