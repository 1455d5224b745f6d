// Codecs of the block formats, byte-compatible with GGUF: decode is exact (the f32 nearest to
// what the format means), encode is the format's plain round-to-nearest encoder. Plain loops, no
// SIMD: these define the formats; kernels/ holds the fast products.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace millrace {

// `elems` must be a multiple of the format's block length. Plain float types are converted.
void decode(DType type, const void* blocks, float* out, int64_t elems);
void encode(DType type, const float* in, void* blocks, int64_t elems);

}  // namespace millrace
