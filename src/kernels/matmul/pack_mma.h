// Layout "mma16": bf16 weights as the tensor cores take them. Tiles of 16 outputs x 16 k in order
// of (output tile, k step), each 512 bytes: for lane l = 4 g + t of a warp its eight elements, rows
// g and g + 8, columns 2t, 2t + 1, 2t + 8, 2t + 9, so that a warp loads a tile as 32 neighbouring
// 16-byte pieces. Outputs past n are zeros; k must be a multiple of 16.
#pragma once

#include <cstddef>

#include "kernels/matmul/args.h"

namespace millrace::matmul {

size_t mma16_bytes(const Args& args);
void pack_mma16(const Args& args, const void* plain, void* packed);
void unpack_mma16(const Args& args, const void* packed, void* plain);

}  // namespace millrace::matmul
