// Reads the header of one safetensors file out of its bytes: a JSON object that says of each tensor
// its type, shape and place. The header is read as a stream of events, so that nothing but the
// tensors themselves is kept, and everything must add up: the tensors fill the data without gap or
// overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"

namespace millrace {

struct SafetensorsEntry {
  std::string name;
  std::string type_name;       // "BF16"
  std::optional<DType> type;   // none: not one of ours
  std::vector<int64_t> shape;  // outermost first
  size_t begin = 0;            // in the file
  size_t bytes = 0;
};

// In the order of their data. `file` names it in errors.
Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> bytes,
                                                        std::string_view file);

}  // namespace millrace
