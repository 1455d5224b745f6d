#include "kernels/matmul/pack_kquants.h"

#include <cstddef>
#include <cstdint>
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

// Vector v of block b as four bytes out of a file's block: nibbles, and the bits above them. By
// words rather than through BlockParts, which would make loading a model wait; unpacking goes
// through them, so the round trip compares the two.
struct FileQuants {
  DType type;
  const Byte* block;

  uint32_t word(size_t at) const {
    uint32_t out;
    std::memcpy(&out, block + at, 4);
    return out;
  }
  uint32_t nibbles(int b, int v) const {
    const auto i = static_cast<size_t>(4 * v), pair = static_cast<size_t>(b / 2 * 32) + i;
    if (type == DType::q4_k)
      return word(offsetof(BlockQ4_K, qs) + pair) >> 4 * (b % 2) & 0x0f0f0f0f;
    if (type == DType::q5_k)
      return word(offsetof(BlockQ5_K, qs) + pair) >> 4 * (b % 2) & 0x0f0f0f0f;
    if (type == DType::iq4_xs)
      return word(offsetof(BlockIq4Xs, qs) + static_cast<size_t>(16 * b + 4 * (v % 4))) >>
                 4 * (v / 4) &
             0x0f0f0f0f;
    const auto low = static_cast<size_t>(b / 4 * 64 + b % 2 * 32) + i;
    return word(offsetof(BlockQ6_K, ql) + low) >> 4 * (b % 4 / 2) & 0x0f0f0f0f;
  }
  uint32_t above(int b, int v) const {
    const auto i = static_cast<size_t>(4 * v);
    if (type == DType::q5_k) return word(offsetof(BlockQ5_K, qh) + i) >> b & 0x01010101;
    const auto high = static_cast<size_t>(b / 4 * 32) + i;
    return word(offsetof(BlockQ6_K, qh) + high) >> 2 * (b % 4) & 0x03030303;
  }
};

void put_word(Byte* line, int output, uint32_t word) {
  std::memcpy(line + 4 * output, &word, 4);
}

void put_block(const FileQuants& file, int b, int output, Byte* block) {
  for (int j = 0; j < 4; ++j)
    put_word(block + kLine * j, output, file.nibbles(b, j) | file.nibbles(b, j + 4) << 4);
  const int n_lines = (kquant_block_bytes(file.type) - kNibbleBytes) / kLine;
  const int vectors = n_lines == 0 ? 0 : 8 / n_lines, bits = n_lines;
  for (int line = 0; line < n_lines; ++line) {
    uint32_t word = 0;
    for (int i = 0; i < vectors; ++i) word |= file.above(b, line * vectors + i) << bits * i;
    put_word(block + kNibbleBytes + kLine * line, output, word);
  }
}

void get_quants(DType type, const Byte* blocks, int output, BlockParts& parts) {
  const BlockShape& shape = block_shape(type);
  for (int e = 0; e < kSuper; ++e) {
    const Place at = place_of(type, output, e);
    int code = blocks[at.low] >> at.low_shift & 15;
    if (high_mask(type) != 0) code |= (blocks[at.high] >> at.high_shift & high_mask(type)) << 4;
    parts.q[e] = static_cast<signed char>(shape.table ? kIq4Values[code] : code - shape.q_bias);
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
  if (type == DType::iq4_xs) {
    move(block + offsetof(BlockIq4Xs, d), super + 2 * output, 2);
    move(block + offsetof(BlockIq4Xs, scales_h), super + 32 + 2 * output, 2);
    move(block + offsetof(BlockIq4Xs, scales_l), super + 64 + 4 * output, 4);
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
    move_scales(a.w_type, output, block, head, super,
                [](const void* file, void* tile, size_t n) { std::memcpy(tile, file, n); });
    for (int b = 0; b < 8; ++b)
      put_block({a.w_type, block}, b, output,
                super + kquant_header_bytes(a.w_type) + b * kquant_block_bytes(a.w_type));
  };
  for_each_block(a, static_cast<const Byte*>(plain), static_cast<Byte*>(packed), visit);
}

void unpack_kquant(const Args& a, const void* packed, void* plain) {
  const auto visit = [&](Byte* block, const Byte* head, const Byte* super, int output) {
    BlockParts parts{};
    get_quants(a.w_type, super + kquant_header_bytes(a.w_type), output, parts);
    pack_block(a.w_type, parts, block);
    move_scales(a.w_type, output, block, head, super,
                [](void* file, const void* tile, size_t n) { std::memcpy(file, tile, n); });
  };
  for_each_block(a, static_cast<Byte*>(plain), static_cast<const Byte*>(packed), visit);
}

}  // namespace millrace::matmul
