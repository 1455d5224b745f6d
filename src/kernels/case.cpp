#include "kernels/case.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tensor/block_parts.h"
#include "tensor/codec.h"
#include "tensor/element.h"
#include "tensor/format.h"

namespace millrace {
namespace {

float hostile_value(Rng& rng) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  switch (rng.below(24)) {
    case 0:
      return std::numeric_limits<float>::quiet_NaN();
    case 1:
      return kInf;
    case 2:
      return -kInf;
    case 3:
      return 0.0f;
    case 4:
      return -0.0f;
    case 5:
      return 0x1p-149f;  // least denormal
    case 6:
      return -0x1p-130f;  // denormal
    case 7:
      return 3e38f;
    default:
      return rng.normal();
  }
}

// A block of extreme or random integers under an extreme fp16 scale.
void make_hostile_block(Rng& rng, DType type, uint8_t* block) {
  constexpr int kPatterns[] = {0x00, 0x80, 0x7f, 0xff};
  constexpr uint16_t kScales[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x7bff, 0x03ff, 0x3c00, 0x2000};
  const uint64_t pattern = rng.below(8);
  for (int i = 0; i < format_of(type).block_bytes; ++i)
    block[i] = static_cast<uint8_t>(pattern < 4 ? kPatterns[pattern] : rng.below(256));
  BlockParts parts;
  unpack_block(type, block, parts);
  parts.d = rng.below(64) == 0 ? uint16_t{0x7e00} : kScales[rng.below(8)];
  parts.dmin = kScales[rng.below(8)];
  pack_block(type, parts, block);
}

}  // namespace

size_t bytes_of(const Port& port) {
  return bytes_of(port.type, port.elems);
}

Fill fill_normal(DType type, int64_t elems, float stddev) {
  return [=](Rng& rng, void* dst) {
    for (int64_t i = 0; i < elems; ++i) store_element(type, dst, i, stddev * rng.normal());
  };
}

Fill fill_uniform(DType type, int64_t elems, float lo, float hi) {
  return [=](Rng& rng, void* dst) {
    for (int64_t i = 0; i < elems; ++i) store_element(type, dst, i, rng.uniform(lo, hi));
  };
}

Fill fill_hostile(DType type, int64_t elems) {
  return [=](Rng& rng, void* dst) {
    for (int64_t i = 0; i < elems; ++i) store_element(type, dst, i, hostile_value(rng));
  };
}

// Blocks are drawn from a bank of quantised normals: encoding all of a big weight takes seconds.
Fill fill_blocks(DType type, int64_t elems, bool hostile) {
  return [=](Rng& rng, void* dst) {
    const Format& f = format_of(type);
    const int64_t n_blocks = elems / f.block_elems;
    const int64_t n_bank = std::min<int64_t>(n_blocks, 4096 / f.block_elems);
    const auto bytes = static_cast<size_t>(f.block_bytes);
    std::vector<float> values(static_cast<size_t>(n_bank * f.block_elems));
    for (float& v : values) v = rng.normal();
    std::vector<uint8_t> bank(static_cast<size_t>(n_bank) * bytes);
    encode(type, values.data(), bank.data(), n_bank * f.block_elems);
    for (int64_t b = 0; b < n_blocks; ++b) {
      auto* block = static_cast<uint8_t*>(dst) + static_cast<size_t>(b) * bytes;
      if (hostile && rng.below(2) == 0)
        make_hostile_block(rng, type, block);
      else
        std::memcpy(block, bank.data() + rng.below(static_cast<uint64_t>(n_bank)) * bytes, bytes);
    }
  };
}

Fill fill_index(int64_t elems, int64_t below) {
  return [=](Rng& rng, void* dst) {
    auto* out = static_cast<int32_t*>(dst);
    for (int64_t i = 0; i < elems; ++i)
      out[i] = static_cast<int32_t>(rng.below(static_cast<uint64_t>(below)));
  };
}

Fill fill_zero(size_t bytes) {
  return [=](Rng&, void* dst) { std::memset(dst, 0, bytes); };
}

}  // namespace millrace
