#include "tensor/block_parts.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "base/check.h"
#include "tensor/blocks.h"
#include "tensor/codecs.h"

namespace millrace {
namespace {

constexpr int kNone = -1;

// A run of small integers inside a block's bytes: `run` neighbours share a shift, then the next
// `run` take the same bytes one shift higher, until the bytes are full. Every format of GGUF lays
// its low bits, high bits and scales out in one of these.
struct Plane {
  int offset = kNone;
  int run = 1;
  int bits = 0;

  constexpr int byte(int i) const { return offset + run * (i / (run * (8 / bits))) + i % run; }
  constexpr int shift(int i) const { return bits * (i / run % (8 / bits)); }
  constexpr int get(const uint8_t* block, int i) const {
    return offset == kNone ? 0 : (block[byte(i)] >> shift(i)) & ((1 << bits) - 1);
  }
  constexpr void put(uint8_t* block, int i, int value) const {
    if (offset == kNone) return;
    block[byte(i)] |= static_cast<uint8_t>((value & ((1 << bits) - 1)) << shift(i));
  }
};

enum class Scales {
  none,
  planes,       // scale_low and scale_high; a minimum, if any, follows the scales in the plane
  six_bit_pair  // Q4_K, Q5_K: 12 bytes at scale_low.offset
};

struct Packing {
  BlockShape shape;
  int d_offset;
  int min_offset;
  Plane low, high;
  Scales scales = Scales::none;
  Plane scale_low = {}, scale_high = {};
};

constexpr BlockShape plain_shape(int bits, int bias, bool has_min = false, bool table = false) {
  return {32, 32, bits, bias, 0, 0, has_min, table};
}

#define AT(member) static_cast<int>(offsetof(Block, member))

template <class Block>
constexpr Packing nibbles(const BlockShape& shape) {
  return {shape, AT(d), kNone, {AT(qs), 16, 4}, {}};
}

constexpr Packing q8_0() {
  using Block = BlockQ8_0;
  return {plain_shape(8, 0), AT(d), kNone, {AT(qs), 1, 8}, {}};
}
constexpr Packing q4_1() {
  using Block = BlockQ4_1;
  return {plain_shape(4, 0, true), AT(d), AT(m), {AT(qs), 16, 4}, {}};
}
constexpr Packing q5_0() {
  using Block = BlockQ5_0;
  return {plain_shape(5, 16), AT(d), kNone, {AT(qs), 16, 4}, {AT(qh), 1, 1}};
}
constexpr Packing q5_1() {
  using Block = BlockQ5_1;
  return {plain_shape(5, 0, true), AT(d), AT(m), {AT(qs), 16, 4}, {AT(qh), 1, 1}};
}
constexpr Packing q2_k() {
  using Block = BlockQ2_K;
  return {{256, 16, 2, 0, 4, 0, true, false},
          AT(d),
          AT(dmin),
          {AT(qs), 32, 2},
          {},
          Scales::planes,
          {AT(scales), 16, 4}};
}
constexpr Packing q3_k() {
  using Block = BlockQ3_K;
  return {{256, 16, 3, 4, 6, 32, false, false},
          AT(d),
          kNone,
          {AT(qs), 32, 2},
          {AT(hmask), 32, 1},
          Scales::planes,
          {AT(scales), 8, 4},
          {AT(scales) + 8, 4, 2}};
}
constexpr Packing q4_k() {
  using Block = BlockQ4_K;
  return {{256, 32, 4, 0, 6, 0, true, false},
          AT(d),
          AT(dmin),
          {AT(qs), 32, 4},
          {},
          Scales::six_bit_pair,
          {AT(scales), 1, 8}};
}
constexpr Packing q5_k() {
  using Block = BlockQ5_K;
  return {{256, 32, 5, 0, 6, 0, true, false},
          AT(d),
          AT(dmin),
          {AT(qs), 32, 4},
          {AT(qh), 32, 1},
          Scales::six_bit_pair,
          {AT(scales), 1, 8}};
}
constexpr Packing q6_k() {
  using Block = BlockQ6_K;
  return {{256, 16, 6, 32, 8, 0, false, false},
          AT(d),
          kNone,
          {AT(ql), 64, 4},
          {AT(qh), 32, 2},
          Scales::planes,
          {AT(scales), 1, 8}};
}
constexpr Packing iq4_xs() {
  using Block = BlockIq4Xs;
  return {{256, 32, 4, 0, 6, 32, false, true},
          AT(d),
          kNone,
          {AT(qs), 16, 4},
          {},
          Scales::planes,
          {AT(scales_l), 1, 4},
          {AT(scales_h), 1, 2}};
}

#undef AT

constexpr Packing kQ8_0 = q8_0(), kQ4_1 = q4_1(), kQ5_0 = q5_0(), kQ5_1 = q5_1();
constexpr Packing kQ4_0 = nibbles<BlockQ4_0>(plain_shape(4, 8));
constexpr Packing kIq4Nl = nibbles<BlockIq4Nl>(plain_shape(4, 0, false, true));
constexpr Packing kQ2_K = q2_k(), kQ3_K = q3_k(), kQ4_K = q4_k(), kQ5_K = q5_k(), kQ6_K = q6_k();
constexpr Packing kIq4Xs = iq4_xs();

uint16_t get_f16(const uint8_t* block, int offset) {
  uint16_t bits;
  std::memcpy(&bits, block + offset, 2);
  return bits;
}

// The 12 bytes of Q4_K: entry i < 8 is a scale, i >= 8 a minimum. The first four of each kind have
// a byte's low six bits; the last four a nibble of bytes 8 to 11, and their high two bits on top of
// the first four's.
struct SixBit {
  int byte, shift, high_byte;  // high_byte kNone: all six bits are in `byte`
};
SixBit six_bit(int i) {
  const int kind = i / 8, j = i % 8;
  if (j < 4) return {4 * kind + j, 0, kNone};
  return {8 + j - 4, 4 * kind, 4 * kind + j - 4};
}
int get_six_bit(const uint8_t* bytes, int i) {
  const SixBit at = six_bit(i);
  if (at.high_byte == kNone) return bytes[at.byte] & 63;
  return ((bytes[at.byte] >> at.shift) & 15) | ((bytes[at.high_byte] >> 6) << 4);
}
void put_six_bit(uint8_t* bytes, int i, int value) {
  const SixBit at = six_bit(i);
  if (at.high_byte == kNone) {
    bytes[at.byte] |= static_cast<uint8_t>(value & 63);
    return;
  }
  bytes[at.byte] |= static_cast<uint8_t>((value & 15) << at.shift);
  bytes[at.high_byte] |= static_cast<uint8_t>((value >> 4 & 3) << 6);
}

template <const Packing& p>
int get_scale(const uint8_t* block, int i) {
  if (p.scales == Scales::six_bit_pair) return get_six_bit(block + p.scale_low.offset, i);
  return p.scale_low.get(block, i) | p.scale_high.get(block, i) << p.scale_low.bits;
}
template <const Packing& p>
void put_scale(uint8_t* block, int i, int value) {
  if (p.scales == Scales::six_bit_pair) return put_six_bit(block + p.scale_low.offset, i, value);
  p.scale_low.put(block, i, value);
  p.scale_high.put(block, i, value >> p.scale_low.bits);
}

int code_of(const BlockShape& shape, int q) {
  if (!shape.table) return q + shape.q_bias;
  return static_cast<int>(std::ranges::find(kIq4Values, q) - std::begin(kIq4Values)) & 15;
}

template <const Packing& p>
void unpack(const uint8_t* bytes, BlockParts& parts) {
  const int n_groups = p.shape.n_groups();
  const bool lone_min = p.shape.has_min && p.scales == Scales::none;
  parts.d = get_f16(bytes, p.d_offset);
  parts.dmin = p.shape.has_min ? get_f16(bytes, p.min_offset) : uint16_t{0};
  if (lone_min) parts.dmin ^= 0x8000;
  for (int i = 0; i < n_groups; ++i) {
    const bool scaled = p.scales != Scales::none;
    parts.scale[i] = static_cast<int8_t>(scaled ? get_scale<p>(bytes, i) - p.shape.scale_bias : 1);
    const int min = scaled && p.shape.has_min ? get_scale<p>(bytes, n_groups + i) : lone_min;
    parts.min[i] = static_cast<uint8_t>(min);
  }
  for (int i = 0; i < p.shape.elems; ++i) {
    const int code = p.low.get(bytes, i) | p.high.get(bytes, i) << p.low.bits;
    parts.q[i] = static_cast<int8_t>(p.shape.table ? kIq4Values[code] : code - p.shape.q_bias);
  }
}

template <const Packing& p>
void pack(const BlockParts& parts, uint8_t* bytes) {
  const int n_groups = p.shape.n_groups();
  std::memcpy(bytes + p.d_offset, &parts.d, 2);
  if (p.shape.has_min) {
    const uint16_t sign = p.scales == Scales::none ? 0x8000 : 0;
    const uint16_t min = parts.dmin ^ sign;
    std::memcpy(bytes + p.min_offset, &min, 2);
  }
  for (int i = 0; i < n_groups && p.scales != Scales::none; ++i) {
    put_scale<p>(bytes, i, parts.scale[i] + p.shape.scale_bias);
    if (p.shape.has_min) put_scale<p>(bytes, n_groups + i, parts.min[i]);
  }
  for (int i = 0; i < p.shape.elems; ++i) {
    const int code = code_of(p.shape, parts.q[i]);
    p.low.put(bytes, i, code);
    p.high.put(bytes, i, code >> p.low.bits);
  }
}

// One instance per format, so that every position and shift is a constant where it is used.
template <const Packing& p>
constexpr Codec codec_for() {
  return {decode_blocks, encode_blocks, p.shape, unpack<p>, pack<p>};
}

const Codec& codec_of(DType type) {
  const Codec* codec = format_of(type).codec;
  MILLRACE_CHECK(codec != nullptr && codec->unpack != nullptr, "{} is not a block format",
                 name_of(type));
  return *codec;
}

}  // namespace

namespace codecs {

constinit const Codec q8_0 = codec_for<kQ8_0>(), q4_0 = codec_for<kQ4_0>();
constinit const Codec q4_1 = codec_for<kQ4_1>(), q5_0 = codec_for<kQ5_0>();
constinit const Codec q5_1 = codec_for<kQ5_1>(), iq4_nl = codec_for<kIq4Nl>();
constinit const Codec q2_k = codec_for<kQ2_K>(), q3_k = codec_for<kQ3_K>();
constinit const Codec q4_k = codec_for<kQ4_K>(), q5_k = codec_for<kQ5_K>();
constinit const Codec q6_k = codec_for<kQ6_K>(), iq4_xs = codec_for<kIq4Xs>();

}  // namespace codecs

const BlockShape& block_shape(DType type) {
  return codec_of(type).shape;
}

void unpack_block(DType type, const void* block, BlockParts& parts) {
  codec_of(type).unpack(static_cast<const uint8_t*>(block), parts);
}

void pack_block(DType type, const BlockParts& parts, void* block) {
  auto* bytes = static_cast<uint8_t*>(block);
  std::memset(bytes, 0, static_cast<size_t>(format_of(type).block_bytes));
  codec_of(type).pack(parts, bytes);
}

}  // namespace millrace
