// The tiles of `width` outputs that a lane multiplies; the last may be short.
#pragma once

#include "kernels/kernel.h"

namespace millrace::matmul {

inline Share tiles_of(const Exec& exec, int64_t n, int64_t width) {
  const Share outputs = exec.columns(n);
  if (outputs.begin == outputs.end) return {0, 0};  // also at the end of a short last tile
  return {outputs.begin / width, (outputs.end + width - 1) / width};
}

}  // namespace millrace::matmul
