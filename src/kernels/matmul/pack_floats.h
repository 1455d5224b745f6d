// Layout "tiles16_f" of f32, f16 and bf16 weights: tiles of 16 outputs, each [k][16] elements in
// the file's type, so that a vector is one k of 16 outputs and every output has an FMA chain of its
// own. Outputs past n are zero.
#pragma once

#include <cstddef>

#include "kernels/matmul/args.h"

namespace millrace::matmul {

inline constexpr long long kFloatTile = 16;  // outputs

size_t floats_bytes(const Args& args);
void pack_floats(const Args& args, const void* plain, void* packed);
void unpack_floats(const Args& args, const void* packed, void* plain);

}  // namespace millrace::matmul
