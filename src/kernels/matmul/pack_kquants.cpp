#include "kernels/matmul/pack_kquants.h"

#include <cstddef>
#include <cstring>

#include "tensor/block_parts.h"
#include "tensor/blocks.h"
#include "tensor/format.h"

namespace millrace::matmul {
namespace {

using Byte = unsigned char;

constexpr int kLine = 64;

// Where element e of a superblock has its bits, in the blocks that follow the superblock's header.
struct Place {
  long long low, high;  // bytes; the high one counts where the format has high bits
  int low_shift, high_shift;
};

Place place_of(DType type, int output, int e) {
  const int v = e % 32 / 4, byte = output * 4 + e % 4;
  const long long block = e / 32 * kquant_block_bytes(type);
  const long long high = block + kNibbleBytes + byte;
  const int low_shift = v / 4 * 4;
  if (type == DType::q6_k)
    return {block + v % 4 * kLine + byte, high + v / 4 * kLine, low_shift, v % 4 * 2};
  return {block + v % 4 * kLine + byte, high, low_shift, v};
}

int high_mask(DType type) {
  return type == DType::q6_k ? 3 : type == DType::q5_k ? 1 : 0;
}

void put_quants(DType type, const BlockParts& parts, int output, Byte* blocks) {
  const int bias = block_shape(type).q_bias;
  for (int e = 0; e < kSuper; ++e) {
    const Place at = place_of(type, output, e);
    const int code = parts.q[e] + bias;
    blocks[at.low] |= static_cast<Byte>((code & 15) << at.low_shift);
    if (high_mask(type) != 0) blocks[at.high] |= static_cast<Byte>(code >> 4 << at.high_shift);
  }
}

void get_quants(DType type, const Byte* blocks, int output, BlockParts& parts) {
  const int bias = block_shape(type).q_bias;
  for (int e = 0; e < kSuper; ++e) {
    const Place at = place_of(type, output, e);
    int code = blocks[at.low] >> at.low_shift & 15;
    if (high_mask(type) != 0) code |= (blocks[at.high] >> at.high_shift & high_mask(type)) << 4;
    parts.q[e] = static_cast<signed char>(code - bias);
  }
}

// Calls move(bytes in the file's block, bytes in the tile, count) for all that is not a quant:
// `head` is the superblock's d in the tile's head (Q6_K), `super` its header.
template <class File, class Tile, class Move>
void move_scales(DType type, int output, File* block, Tile* head, Tile* super, Move move) {
  if (type == DType::q6_k) {
    move(block + offsetof(BlockQ6_K, d), head + 2 * output, 2);
    for (int g = 0; g < 16; ++g)
      move(block + offsetof(BlockQ6_K, scales) + g, super + 16 * g + output, 1);
    return;
  }
  static_assert(offsetof(BlockQ4_K, scales) == offsetof(BlockQ5_K, scales));
  move(block + offsetof(BlockQ4_K, d), super + 2 * output, 2);
  move(block + offsetof(BlockQ4_K, dmin), super + 32 + 2 * output, 2);
  for (int i = 0; i < 3; ++i)
    move(block + offsetof(BlockQ4_K, scales) + 4 * i, super + 64 + 64 * i + 4 * output, 4);
}

// Calls visit(file's block, head, super, output) for every block of the weight.
template <class File, class Tile, class Visit>
void for_each_block(const Args& a, File* plain, Tile* packed, Visit visit) {
  const long long n_super = a.k / kSuper, block_bytes = format_of(a.w_type).block_bytes;
  for (long long o = 0; o < a.n; ++o) {
    Tile* tile = packed + o / kTile * kquant_tile_bytes(a.w_type, a.k);
    Tile* supers = tile + kquant_head_bytes(a.w_type, a.k);
    for (long long s = 0; s < n_super; ++s)
      visit(plain + (o * n_super + s) * block_bytes, tile + s * 32,
            supers + s * kquant_super_bytes(a.w_type), static_cast<int>(o % kTile));
  }
}

}  // namespace

size_t kquant_bytes(const Args& a) {
  return static_cast<size_t>((a.n + kTile - 1) / kTile * kquant_tile_bytes(a.w_type, a.k));
}

void pack_kquant(const Args& a, const void* plain, void* packed) {
  std::memset(packed, 0, kquant_bytes(a));
  const auto visit = [&](const Byte* block, Byte* head, Byte* super, int output) {
    BlockParts parts;
    unpack_block(a.w_type, block, parts);
    move_scales(a.w_type, output, block, head, super,
                [](const void* file, void* tile, size_t n) { std::memcpy(tile, file, n); });
    put_quants(a.w_type, parts, output, super + kSuperHeader);
  };
  for_each_block(a, static_cast<const Byte*>(plain), static_cast<Byte*>(packed), visit);
}

void unpack_kquant(const Args& a, const void* packed, void* plain) {
  const auto visit = [&](Byte* block, const Byte* head, const Byte* super, int output) {
    BlockParts parts{};
    get_quants(a.w_type, super + kSuperHeader, output, parts);
    pack_block(a.w_type, parts, block);
    move_scales(a.w_type, output, block, head, super,
                [](void* file, const void* tile, size_t n) { std::memcpy(file, tile, n); });
  };
  for_each_block(a, static_cast<Byte*>(plain), static_cast<const Byte*>(packed), visit);
}

}  // namespace millrace::matmul
