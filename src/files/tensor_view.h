// A tensor's bytes inside a mapped file: what every model format offers its weights as.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace millrace {

// Shapes are row-major, outermost first, so a weight of n outputs and k inputs is {n, k} (GGUF
// lists them the other way round).
struct TensorView {
  std::string_view name;
  DType type = DType::f32;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;
  size_t bytes = 0;
};

}  // namespace millrace
