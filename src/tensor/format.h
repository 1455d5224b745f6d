// What a block of each DType holds: how many elements, how many bytes. Byte-compatible with GGUF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace millrace {

struct Format {
  std::string_view name;
  int block_elems;  // 1 for plain types
  int block_bytes;
};

const Format& format_of(DType type);
std::optional<DType> dtype_named(std::string_view name);
inline std::string_view name_of(DType type) {
  return format_of(type).name;
}
inline bool is_block_format(DType type) {
  return format_of(type).block_elems > 1;
}

// Bytes of `elems` elements; elems must be a multiple of the block length.
size_t bytes_of(DType type, int64_t elems);

}  // namespace millrace
