#include "files/random_weights.h"

#include <cmath>

#include "base/check.h"
#include "base/philox.h"
#include "base/small_float.h"
#include "tensor/block_parts.h"
#include "tensor/blocks.h"
#include "tensor/codec.h"
#include "tensor/format.h"

namespace millrace {
namespace {

constexpr double kUniformDeviation = 0.28867513459481287;  // of [0, 1): 1 / sqrt(12)
constexpr int kScaleLevels = 16;  // of a group, where the format has scales

class Bytes {
 public:
  explicit Bytes(const RandomRow& row) : rng_(row.seed, (row.tensor << 32) + row.row) {}
  unsigned next() {
    if (left_ == 0) {
      word_ = rng_.next_u32();
      left_ = 4;
    }
    const unsigned byte = word_ & 0xff;
    word_ >>= 8;
    --left_;
    return byte;
  }
  float uniform(float lo, float hi) { return rng_.uniform(lo, hi); }

 private:
  Rng rng_;
  uint32_t word_ = 0;
  int left_ = 0;
};

// The codes of a format are 0 to 2^bits - 1; without a minimum the lowest is left out, so that the
// mean is 0.
int random_code(const BlockShape& s, Bytes& bytes) {
  const unsigned n = 1u << s.q_bits;
  if (s.table) return kIq4Values[bytes.next() % n];
  if (s.has_min) return static_cast<int>(bytes.next() % n);
  return static_cast<int>(1 + bytes.next() % (n - 1)) - static_cast<int>(n / 2);
}

double code_deviation(const BlockShape& s) {
  if (!s.table) return kUniformDeviation * ((1 << s.q_bits) - (s.has_min ? 0 : 1));
  double squares = 0;
  for (const int8_t value : kIq4Values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares / 16);
}

// A group's scale: one of the upper levels, so that groups differ and none is lost.
int random_scale(const BlockShape& s, Bytes& bytes) {
  if (s.scale_bits == 0) return 1;
  const int most = s.has_min ? (1 << s.scale_bits) - 1 : (1 << (s.scale_bits - 1)) - 1;
  return most - static_cast<int>(bytes.next() % kScaleLevels) * most / (2 * kScaleLevels);
}

double mean_scale(const BlockShape& s) {
  if (s.scale_bits == 0) return 1;
  const int most = s.has_min ? (1 << s.scale_bits) - 1 : (1 << (s.scale_bits - 1)) - 1;
  return 0.77 * most;
}

// The block's own scales are the same in all blocks; with a minimum, codes are centred by it.
void set_block_scales(const BlockShape& s, float deviation, BlockParts& parts) {
  const double d = deviation / (code_deviation(s) * mean_scale(s));
  const double middle = 0.5 * ((1 << s.q_bits) - 1);
  parts.d = f32_to_f16(static_cast<float>(d));
  parts.dmin = s.has_min ? f32_to_f16(static_cast<float>(d * middle)) : uint16_t{0};
}

void fill_block(const BlockShape& s, Bytes& bytes, BlockParts& parts) {
  for (int g = 0; g < s.n_groups(); ++g) {
    const int scale = random_scale(s, bytes);
    parts.scale[g] = static_cast<int8_t>(scale);
    parts.min[g] = static_cast<uint8_t>(s.has_min ? scale : 0);
  }
  for (int i = 0; i < s.elems; ++i) parts.q[i] = static_cast<int8_t>(random_code(s, bytes));
}

void fill_floats(DType type, const RandomRow& row, std::byte* out, int64_t elems) {
  Bytes bytes(row);
  const float reach = row.deviation / static_cast<float>(2 * kUniformDeviation);
  for (int64_t i = 0; i < elems; ++i) {
    const float value = bytes.uniform(-reach, reach);
    encode(type, &value, out + i * format_of(type).block_bytes, 1);
  }
}

}  // namespace

void fill_random(DType type, const RandomRow& row, std::byte* out, int64_t elems) {
  if (!is_block_format(type)) return fill_floats(type, row, out, elems);
  const BlockShape& shape = block_shape(type);
  MILLRACE_CHECK(elems % shape.elems == 0, "{} elements are not whole blocks", elems);
  Bytes bytes(row);
  BlockParts parts;
  set_block_scales(shape, row.deviation, parts);
  for (int64_t b = 0; b < elems / shape.elems; ++b) {
    fill_block(shape, bytes, parts);
    pack_block(type, parts, out + b * format_of(type).block_bytes);
  }
}

}  // namespace millrace
