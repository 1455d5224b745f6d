// The table of types, one row per DType: its name, its number in GGUF, what a block of it holds,
// what it is for and how it is converted. A new type is a row in format.cpp and its codec; nothing
// else lists the types. Block formats are byte-compatible with GGUF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tensor/dtype.h"

namespace millrace {

struct Codec;

enum class Family : unsigned char {
  integer,     // indices and bytes
  real,        // floating point, element by element
  block,       // a few elements and what they share: a scale, perhaps a minimum
  superblock,  // groups with small scales of their own under a scale for all
  activation,  // what products turn their inputs into; no file holds it
};

struct Format {
  DType type;
  std::string_view name;
  std::optional<uint32_t> gguf_id;  // none: GGUF has no such tensors
  int block_elems;                  // 1 for plain types
  int block_bytes;
  Family family;
  DType input;         // of weights: what a matrix product on a CPU reads its activations as
  DType fallback;      // of weights: what rows that are not whole blocks are written as
  const Codec* codec;  // of weights: to f32 and back; else null
};

std::span<const Format> formats();  // in DType's order
const Format& format_of(DType type);
std::optional<DType> dtype_named(std::string_view name);
inline std::string_view name_of(DType type) {
  return format_of(type).name;
}
inline bool is_block_format(DType type) {
  return format_of(type).block_elems > 1;
}
inline bool is_real(DType type) {
  return format_of(type).family == Family::real;
}
// Whether a model's weights may be of this type: it can be decoded.
inline bool is_weight_format(DType type) {
  return format_of(type).codec != nullptr;
}
inline bool is_quantised_weight(DType type) {
  return is_weight_format(type) && is_block_format(type);
}

// Bytes of `elems` elements; elems must be a multiple of the block length.
size_t bytes_of(DType type, int64_t elems);

}  // namespace millrace
