// Layout "tiles16_k" of Q4_K, Q5_K, Q6_K and IQ4_XS weights: tiles of 16 outputs, each a run of
// superblocks of 256 k read in ascending order, every part whole 64-byte lines. A line of quants is
// 16 outputs x 4 consecutive k, so one 32-bit lane is one output and a 4-byte broadcast of x meets
// it. The bits are the file's, moved; outputs past n are zero. Vector v of a block of 32 is k = 4v
// to 4v
// + 3.
//   Q4_K, Q5_K superblock: f16 d[16], f16 dmin[16], the 12 scale bytes as u32 [3][16], 8 blocks
//   Q6_K: f16 d[n_super][16] at the tile's head, filled up to a line; superblock: i8 scale[16][16],
//         8 blocks
//   IQ4_XS superblock: f16 d[16], u16 of the scales' high bits [16], u32 of their low bits [16], 8
//         blocks
//   block: 4 lines of nibbles (line j: vector j low, vector j + 4 high), then the high bits:
//         Q5_K 1 line (bit v: vector v), Q6_K 2 lines (line h, bits 2i: vector 4h + i)
#pragma once

#include <cstddef>

#include "kernels/matmul/args.h"

namespace millrace::matmul {

inline constexpr long long kTile = 16;    // outputs
inline constexpr long long kSuper = 256;  // k of a superblock
inline constexpr int kNibbleBytes = 256;  // of a block of 32 k of a tile

// IQ4_XS is one but for its table of values.
constexpr bool is_kquant(DType type) {
  return type == DType::q4_k || type == DType::q5_k || type == DType::q6_k || type == DType::iq4_xs;
}
// Of the scales before a superblock's blocks.
constexpr int kquant_header_bytes(DType type) {
  return type == DType::iq4_xs ? 128 : 256;
}
constexpr int kquant_block_bytes(DType type) {
  return kNibbleBytes + (type == DType::q5_k ? 64 : type == DType::q6_k ? 128 : 0);
}
constexpr long long kquant_super_bytes(DType type) {
  return kquant_header_bytes(type) + 8 * kquant_block_bytes(type);
}
constexpr long long kquant_head_bytes(DType type, long long k) {
  return type == DType::q6_k ? (k / kSuper + 1) / 2 * 64 : 0;
}
constexpr long long kquant_tile_bytes(DType type, long long k) {
  return kquant_head_bytes(type, k) + k / kSuper * kquant_super_bytes(type);
}
static_assert(kquant_super_bytes(DType::q4_k) == 16 * 144);
static_assert(kquant_super_bytes(DType::q5_k) == 16 * 176);
static_assert(kquant_super_bytes(DType::iq4_xs) == 16 * 136);
static_assert(kquant_tile_bytes(DType::q6_k, 512) == 2 * 16 * 210);

size_t kquant_bytes(const Args& args);
void pack_kquant(const Args& args, const void* plain, void* packed);
void unpack_kquant(const Args& args, const void* packed, void* plain);

}  // namespace millrace::matmul
