// One element of a plain float type, by index: what references, fills and comparisons read and
// write with. Not for kernels.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "base/small_float.h"
#include "tensor/dtype.h"
#include "tensor/format.h"

namespace millrace {

inline float load_element(DType type, const void* data, int64_t i) {
  switch (type) {
    case DType::f32:
      return static_cast<const float*>(data)[i];
    case DType::f16:
      return f16_to_f32(static_cast<const uint16_t*>(data)[i]);
    case DType::bf16:
      return bf16_to_f32(static_cast<const uint16_t*>(data)[i]);
    default:
      MILLRACE_CHECK(false, "{} is not a plain float type", name_of(type));
      return 0;
  }
}

// Rounds to nearest even.
inline void store_element(DType type, void* data, int64_t i, float value) {
  switch (type) {
    case DType::f32:
      static_cast<float*>(data)[i] = value;
      return;
    case DType::f16:
      static_cast<uint16_t*>(data)[i] = f32_to_f16(value);
      return;
    case DType::bf16:
      static_cast<uint16_t*>(data)[i] = f32_to_bf16(value);
      return;
    default:
      MILLRACE_CHECK(false, "{} is not a plain float type", name_of(type));
  }
}

}  // namespace millrace
