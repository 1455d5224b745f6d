// Layout "mma16": weights as the tensor cores of a GPU take them, in tiles of 16 outputs. bf16:
// tiles of 16 outputs x 16 k in order of (output tile, k step), each 512 bytes: for lane l = 4 g +
// t of a warp its eight elements, rows g and g + 8, columns 2t, 2t + 1, 2t + 8, 2t + 9, so that a
// warp loads a tile as 32 neighbouring 16-byte pieces. Outputs past n are zeros.
//
// Q8_0, Q4_0, Q4_K, Q6_K: the file's bytes in another order, none added but for the last tile's
// padding. The elements of 32 k are two such steps, 16 of a lane: eight a step, rows g, g + 8 by
// columns 2t, then by columns 2t + 8. Q8_0 stores q + 128 in a byte each; the others the four low
// bits of pair p of a step in nibbles p and p + 4 of a word; Q6_K's high bits of pair p of both
// steps are bits 2p and 16 + 2p of a word. What belongs to outputs is in the order 0, 8, 1, 9, ...
// 7, 15. tile.cuh says which bytes make a block of a tile.
//
// Layout "mma16_decoded": what that of bf16 is, of weights decoded and rounded once to bf16: those
// of a GPU that reads no packed bytes, and what the ones that do are held against.
#pragma once

#include <cstddef>

#include "kernels/matmul/args.h"

namespace millrace::matmul {

size_t mma16_bytes(const Args& args);
void pack_mma16(const Args& args, const void* plain, void* packed);
void unpack_mma16(const Args& args, const void* packed, void* plain);

size_t decoded_mma16_bytes(const Args& args);
void pack_decoded_mma16(const Args& args, const void* plain, void* packed);

}  // namespace millrace::matmul
