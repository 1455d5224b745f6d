#include "kernels/matmul/pack.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "base/check.h"
#include "tensor/format.h"

namespace millrace::matmul::tiles16 {
namespace {

// Where a format's file block has what a tile's block has: d is at 0, m (if any) at 2.
struct Source {
  DType type;
  bool has_min, has_high;
  int q_bytes;
  uint32_t bias;  // of four q

  BlockLayout tile() const { return block_layout(has_min, has_high, q_bytes); }
  int high() const { return has_min ? 4 : 2; }
  int q() const { return high() + (has_high ? 4 : 0); }
};

constexpr Source kSources[] = {
    {DType::q8_0, false, false, 32, 0x80808080u},
    {DType::q4_0, false, false, 16, 0},
    {DType::q4_1, true, false, 16, 0},
    {DType::q5_0, false, true, 16, 0},
    {DType::q5_1, true, true, 16, 0},
    {DType::iq4_nl, false, false, 16, 0},
};

const Source* find_source(DType type) {
  const auto* found = std::ranges::find(kSources, type, &Source::type);
  return found == std::end(kSources) ? nullptr : found;
}
const Source& source_of(DType type) {
  const Source* source = find_source(type);
  MILLRACE_CHECK(source != nullptr, "layout tiles16 has no {}", name_of(type));
  return *source;
}

// Swaps index bits a < b of a word's 32 bits: the bit at position p goes to p with its bits a and b
// exchanged.
template <int a, int b>
uint32_t swap_index_bits(uint32_t word) {
  constexpr uint32_t with_a_alone = [] {
    uint32_t mask = 0;
    for (int p = 0; p < 32; ++p)
      if ((p >> a & 1) == 1 && (p >> b & 1) == 0) mask |= uint32_t{1} << p;
    return mask;
  }();
  constexpr int distance = (1 << b) - (1 << a);
  const uint32_t differ = (word ^ word >> distance) & with_a_alone;
  return word ^ differ ^ differ << distance;
}

// The file's fifth bits, element 4 * g + i at bit 4 * g + i, to bit g of byte i.
uint32_t spread_high(uint32_t bits) {
  return swap_index_bits<0, 1>(
      swap_index_bits<1, 2>(swap_index_bits<0, 3>(swap_index_bits<1, 4>(bits))));
}

uint32_t gather_high(uint32_t bytes) {
  return swap_index_bits<1, 4>(
      swap_index_bits<0, 3>(swap_index_bits<1, 2>(swap_index_bits<0, 1>(bytes))));
}

uint32_t word_at(const uint8_t* at) {
  uint32_t word;
  std::memcpy(&word, at, 4);
  return word;
}
void put_word(uint8_t* at, uint32_t word) {
  std::memcpy(at, &word, 4);
}

void pack_block(const Source& p, const uint8_t* block, int o, uint8_t* tile) {
  const BlockLayout at = p.tile();
  std::memcpy(tile + 2 * o, block, 2);
  if (p.has_min) std::memcpy(tile + at.m + 2 * o, block + 2, 2);
  if (p.has_high) put_word(tile + at.high + 4 * o, spread_high(word_at(block + p.high())));
  for (int v = 0; v < p.q_bytes / 4; ++v)
    put_word(tile + at.q + 4 * (kOutputs * v + o), word_at(block + p.q() + 4 * v) ^ p.bias);
}

void unpack_block(const Source& p, const uint8_t* tile, int o, uint8_t* block) {
  const BlockLayout at = p.tile();
  std::memcpy(block, tile + 2 * o, 2);
  if (p.has_min) std::memcpy(block + 2, tile + at.m + 2 * o, 2);
  if (p.has_high) put_word(block + p.high(), gather_high(word_at(tile + at.high + 4 * o)));
  for (int v = 0; v < p.q_bytes / 4; ++v)
    put_word(block + p.q() + 4 * v, word_at(tile + at.q + 4 * (kOutputs * v + o)) ^ p.bias);
}

// Calls visit(file block offset, output within the tile, tile block offset) for every block.
template <class Visit>
void for_each_block(const Args& a, const Source& p, Visit visit) {
  const long long n_blocks = a.k / 32, block_bytes = format_of(a.w_type).block_bytes;
  const long long tile_bytes = p.tile().bytes;
  for (long long o = 0; o < a.n; ++o)
    for (long long b = 0; b < n_blocks; ++b)
      visit((o * n_blocks + b) * block_bytes, static_cast<int>(o % kOutputs),
            (o / kOutputs * n_blocks + b) * tile_bytes);
}

}  // namespace

bool takes(const Args& a) {
  return find_source(a.w_type) != nullptr && a.x_type == DType::q8_row && a.y_type == DType::f32;
}

size_t packed_bytes(const Args& a) {
  return bytes_of(a.w_type, n_tiles(a.n) * kOutputs * a.k);
}

void pack(const Args& a, const void* plain, void* packed) {
  const Source p = source_of(a.w_type);  // a copy, which no byte that is written can be part of
  if (a.n % kOutputs != 0) {
    const size_t tile = packed_bytes(a) / static_cast<size_t>(n_tiles(a.n));
    std::memset(static_cast<uint8_t*>(packed) + packed_bytes(a) - tile, 0, tile);
  }
  for_each_block(a, p, [&](long long from, int o, long long to) {
    pack_block(p, static_cast<const uint8_t*>(plain) + from, o, static_cast<uint8_t*>(packed) + to);
  });
}

void unpack(const Args& a, const void* packed, void* plain) {
  const Source p = source_of(a.w_type);  // a copy, which no byte that is written can be part of
  for_each_block(a, p, [&](long long to, int o, long long from) {
    unpack_block(p, static_cast<const uint8_t*>(packed) + from, o,
                 static_cast<uint8_t*>(plain) + to);
  });
}

}  // namespace millrace::matmul::tiles16
