// Reads the header of one GGUF file out of its bytes. Nothing is allocated from a number that was
// not checked against the bytes left, and never more than a small multiple of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "files/gguf.h"

namespace millrace {

struct GgufHeader {
  uint32_t version = 0;
  size_t bytes = 0;  // where it ends
  std::vector<GgufValue> values;
  std::vector<GgufTensor> tensors;  // data inside the file, ranges disjoint
};

// Keys, values and names are views into `header`, which may be a copy of the file's first bytes;
// data lies in `file`. `name` is the file's in errors.
Result<GgufHeader> parse_gguf(std::span<const std::byte> header, std::span<const std::byte> file,
                              std::string_view name);

}  // namespace millrace
