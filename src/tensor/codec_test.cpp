#include "tensor/codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "base/philox.h"
#include "tensor/block_parts.h"
#include "tensor/format.h"

namespace millrace {
namespace {

using Bytes = std::vector<uint8_t>;

std::vector<DType> block_formats() {
  std::vector<DType> out;
  for (int i = static_cast<int>(DType::q8_0); i < static_cast<int>(DType::q8_row); ++i)
    out.push_back(static_cast<DType>(i));
  return out;
}

Bytes from_hex(std::string_view hex) {
  Bytes out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return out;
}

uint64_t fnv1a(const void* data, size_t bytes) {
  uint64_t h = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes; ++i) h = (h ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3;
  return h;
}

Bytes random_blocks(DType type, int64_t elems, uint64_t seed) {
  Rng rng(seed);
  Bytes out(bytes_of(type, elems));
  for (auto& byte : out) byte = static_cast<uint8_t>(rng.next_u32());
  return out;
}

std::vector<float> normals(int64_t n, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> out(static_cast<size_t>(n));
  for (float& v : out) v = rng.normal();
  return out;
}

std::vector<float> decoded(DType type, const Bytes& blocks, int64_t elems) {
  std::vector<float> out(static_cast<size_t>(elems));
  decode(type, blocks.data(), out.data(), elems);
  return out;
}

std::vector<float> round_trip(DType type, const std::vector<float>& x) {
  const auto elems = static_cast<int64_t>(x.size());
  Bytes blocks(bytes_of(type, elems));
  encode(type, x.data(), blocks.data(), elems);
  return decoded(type, blocks, elems);
}

double relative_rms(const std::vector<float>& got, const std::vector<float>& want) {
  double miss = 0, all = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    miss += std::pow(double{got[i]} - want[i], 2);
    all += std::pow(double{want[i]}, 2);
  }
  return std::sqrt(miss / all);
}

// A line of tests/golden/codec.txt; tools/codec_golden.py says what it holds.
struct Golden {
  std::string format, blocks;
  uint64_t hash = 0;
  uint32_t spots[4] = {};
};

std::vector<Golden> goldens() {
  std::ifstream file(MILLRACE_GOLDEN "/codec.txt");
  std::vector<Golden> out;
  for (Golden g; file >> g.format >> g.blocks >> std::hex >> g.hash >> g.spots[0] >> g.spots[1] >>
                 g.spots[2] >> g.spots[3];)
    out.push_back(g);
  return out;
}

TEST(Codec, DecodesAsTheGgufPackageDoes) {
  const std::vector<Golden> all = goldens();
  EXPECT_EQ(all.size(), block_formats().size());
  for (const Golden& golden : all) {
    const DType type = dtype_named(golden.format).value();
    const Bytes blocks = from_hex(golden.blocks);
    const auto n = static_cast<size_t>(format_of(type).block_elems);
    ASSERT_EQ(blocks.size(), 2 * static_cast<size_t>(format_of(type).block_bytes));
    const std::vector<float> got = decoded(type, blocks, static_cast<int64_t>(2 * n));
    const size_t at[] = {0, 13, 29, 2 * n - 1};
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(std::bit_cast<uint32_t>(got[at[i]]), golden.spots[i])
          << golden.format << " element " << at[i];
    EXPECT_EQ(fnv1a(got.data(), got.size() * 4), golden.hash) << golden.format;
  }
}

TEST(Codec, TakesBlocksApartAndTogetherExactly) {
  for (DType type : block_formats()) {
    const int64_t elems = 64 * format_of(type).block_elems;
    const auto block_bytes = static_cast<size_t>(format_of(type).block_bytes);
    const Bytes blocks = random_blocks(type, elems, 7);
    Bytes again(blocks.size(), 0xee);
    BlockParts parts;
    for (size_t at = 0; at < blocks.size(); at += block_bytes) {
      unpack_block(type, &blocks[at], parts);
      pack_block(type, parts, &again[at]);
    }
    EXPECT_EQ(again, blocks) << name_of(type);
  }
}

// Bounds are what these encoders reach on normal data, rounded up.
TEST(Codec, RoundTripsNormalDataClosely) {
  const struct {
    DType type;
    double bound;
  } kBounds[] = {{DType::f32, 0},       {DType::f16, 0.00022},  {DType::bf16, 0.0018},
                 {DType::q8_0, 0.0056}, {DType::q4_0, 0.09},    {DType::q4_1, 0.081},
                 {DType::q5_0, 0.044},  {DType::q5_1, 0.039},   {DType::q2_k, 0.29},
                 {DType::q3_k, 0.16},   {DType::q4_k, 0.075},   {DType::q5_k, 0.0375},
                 {DType::q6_k, 0.0185}, {DType::iq4_nl, 0.079}, {DType::iq4_xs, 0.08}};
  const std::vector<float> x = normals(16384, 3);
  for (const auto& [type, bound] : kBounds) {
    EXPECT_LE(relative_rms(round_trip(type, x), x), bound) << name_of(type);
    std::vector<float> small = x, negative = x;
    for (float& v : small) v *= 0x1p-9f;
    for (float& v : negative) v = -std::fabs(v);
    EXPECT_LE(relative_rms(round_trip(type, small), small), 1.15 * bound) << name_of(type);
    EXPECT_LE(relative_rms(round_trip(type, negative), negative), 1.3 * bound) << name_of(type);
  }
}

TEST(Codec, KeepsZeros) {
  const std::vector<float> zeros(1024, 0.0f);
  for (DType type : block_formats())
    for (float v : round_trip(type, zeros)) ASSERT_EQ(v, 0.0f) << name_of(type);
}

TEST(Codec, SurvivesHostileBlocks) {
  for (DType type : block_formats()) {
    const int64_t elems = 8 * format_of(type).block_elems;
    for (uint8_t fill : {0x00, 0x7c, 0x7e, 0x7f, 0xff}) {
      const Bytes blocks(bytes_of(type, elems), fill);
      EXPECT_EQ(decoded(type, blocks, elems).size(), static_cast<size_t>(elems));
    }
  }
}

TEST(Codec, SurvivesHostileInput) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (DType type : block_formats())
    for (float bad : {std::nanf(""), kInf, -kInf, 3e38f, 1e-45f, -1e-38f}) {
      std::vector<float> x = normals(1024, 11);
      for (size_t i = 0; i < x.size(); i += 37) x[i] = bad;
      EXPECT_EQ(round_trip(type, x).size(), x.size());
      EXPECT_EQ(round_trip(type, std::vector<float>(1024, bad)).size(), x.size());
    }
}

TEST(Codec, TakesNoElements) {
  for (DType type : block_formats()) {
    decode(type, nullptr, nullptr, 0);
    encode(type, nullptr, nullptr, 0);
  }
  decode(DType::f32, nullptr, nullptr, 0);
}

}  // namespace
}  // namespace millrace
