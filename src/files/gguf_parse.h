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
  std::vector<GgufValue> values;
  std::vector<GgufTensor> tensors;  // data inside `bytes`, ranges disjoint
};

// `file` names it in errors.
Result<GgufHeader> parse_gguf(std::span<const std::byte> bytes, std::string_view file);

}  // namespace millrace
