// Layout tiles16, for the formats of 32-element blocks (Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL): the
// file's bytes in another order, none added but for the last tile's padding. A tile is 16 outputs,
// the last one padded with zeros; tiles follow each other, and inside a tile its k / 32 blocks do.
// A block of a tile is
//   f16 d[16], f16 m[16] where the format has a minimum,
//   u8 high[16][4] of 5-bit formats: bit g of high[o][i] is the fifth bit of element 4 * g + i,
//   u8 q[v][16][4]: the file's quant bytes 4 * v to 4 * v + 3 of each output, Q8_0's plus 128.
// So 64 bytes of q are four consecutive k of 16 outputs: one vpdpbusd (its low nibbles k = 4 * v..,
// its high nibbles k = 16 + 4 * v.. where two share a byte), or two vpmaddubsw of 8 outputs. A
// one-row product reads its tiles as one ascending stream.
#pragma once

#include <cstddef>

#include "kernels/matmul/args.h"

namespace millrace::matmul::tiles16 {

inline constexpr int kOutputs = 16;  // of a tile

// Where the parts of a tile's block stand, in bytes.
struct BlockLayout {
  int m, high, q, bytes;
};
constexpr BlockLayout block_layout(bool has_min, bool has_high, int q_bytes) {
  const int m = 2 * kOutputs, high = m + (has_min ? 2 * kOutputs : 0);
  const int q = high + (has_high ? 4 * kOutputs : 0);
  return {m, high, q, q + q_bytes * kOutputs};
}
inline constexpr BlockLayout kQ8_0 = block_layout(false, false, 32);
inline constexpr BlockLayout kQ4_0 = block_layout(false, false, 16);
inline constexpr BlockLayout kQ4_1 = block_layout(true, false, 16);
inline constexpr BlockLayout kQ5_0 = block_layout(false, true, 16);
inline constexpr BlockLayout kQ5_1 = block_layout(true, true, 16);
inline constexpr BlockLayout kIq4Nl = kQ4_0;

constexpr long long n_tiles(long long n) {
  return (n + kOutputs - 1) / kOutputs;
}

constexpr bool is_tiled(DType type) {
  return (type >= DType::q8_0 && type <= DType::q5_1) || type == DType::iq4_nl;
}

bool takes(const Args& args);  // the six formats, x in q8_row, y in f32
size_t packed_bytes(const Args& args);
void pack(const Args& args, const void* plain, void* packed);
void unpack(const Args& args, const void* packed, void* plain);

}  // namespace millrace::matmul::tiles16
