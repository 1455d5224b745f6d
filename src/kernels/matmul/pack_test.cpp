// Every packed layout gives the file's bytes back, whatever they are, and adds none but padding.
// What a GPU makes of 8 and 4 bits is the codec's value rounded once to bf16.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "base/philox.h"
#include "base/small_float.h"
#include "kernels/case.h"
#include "kernels/matmul/op.h"
#include "tensor/codec.h"
#include "tensor/format.h"

namespace millrace::matmul {
namespace {

// `on_gpu`: as a GPU multiplies it.
struct Kept {
  DType type;
  bool on_gpu = false;
};

Args shape_of(Kept format, long long n, long long k) {
  return {.w = nullptr,
          .x = nullptr,
          .y = nullptr,
          .n_rows = 1,
          .n = n,
          .k = k,
          .w_type = format.type,
          .x_type = input_type(format.type, format.on_gpu),
          .y_type = DType::f32};
}

// The layout of the first variant that takes these args; a GPU's where x is bf16.
const Layout& layout_for(const Args& args) {
  if (args.x_type == DType::bf16) return *layout_named(kOp, "mma16");
  for (const Variant& variant : variants())
    if (variant.takes != nullptr && variant.takes(&args)) return *layout_named(kOp, variant.layout);
  ADD_FAILURE() << "no packed layout for " << name_of(args.w_type);
  return kOp.layouts().front();
}

class MatmulPack : public testing::TestWithParam<Kept> {
 protected:
  // Of an odd number of blocks, and of two.
  static long long odd_k() { return 3LL * block_elems(); }
  static long long even_k() { return 2LL * block_elems(); }
  static DType type() { return GetParam().type; }

 private:
  // A GPU's least k is a step of its tensor cores.
  static int block_elems() {
    return std::max(format_of(type()).block_elems, GetParam().on_gpu ? 16 : 1);
  }
};

TEST_P(MatmulPack, UnpackIsTheInverseOfPack) {
  for (long long n : {1, 15, 16, 17, 40}) {
    const Args args = shape_of(GetParam(), n, odd_k());
    const Layout& layout = layout_for(args);
    Rng rng(7, static_cast<uint64_t>(n));
    std::vector<uint8_t> plain(bytes_of(type(), n * args.k)), back(plain.size(), 0xcc);
    for (uint8_t& byte : plain) byte = static_cast<uint8_t>(rng.next_u32());
    std::vector<uint8_t> packed(layout.bytes(&args), 0xcc);
    layout.pack(&args, plain.data(), packed.data());
    layout.unpack(&args, packed.data(), back.data());
    EXPECT_EQ(plain, back) << n << " outputs";
  }
}

TEST_P(MatmulPack, PacksRunsOfWholeGrainsByThemselves) {
  const Args args = shape_of(GetParam(), 40, odd_k());
  const Layout& layout = layout_for(args);
  ASSERT_GT(layout.row_grain, 1);
  const auto row_bytes = bytes_of(type(), args.k);
  Rng rng(11);
  std::vector<uint8_t> plain(row_bytes * 40);
  for (uint8_t& byte : plain) byte = static_cast<uint8_t>(rng.next_u32());
  std::vector<uint8_t> whole(layout.bytes(&args)), parts(whole.size());
  layout.pack(&args, plain.data(), whole.data());
  for (long long o = 0; o < args.n; o += layout.row_grain) {
    const Args before = shape_of(GetParam(), o, args.k);
    const Args part =
        shape_of(GetParam(), std::min<long long>(layout.row_grain, args.n - o), args.k);
    const size_t at = o == 0 ? 0 : layout.bytes(&before);
    layout.pack(&part, plain.data() + row_bytes * static_cast<size_t>(o), parts.data() + at);
  }
  EXPECT_EQ(parts, whole);
}

TEST_P(MatmulPack, AddsNoBytesToWholeTiles) {
  const size_t three_tiles = bytes_of(type(), 48 * even_k());
  for (long long n : {33, 48}) {
    const Args args = shape_of(GetParam(), n, even_k());
    EXPECT_EQ(layout_for(args).bytes(&args), three_tiles) << n << " outputs";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, MatmulPack,
    testing::Values(Kept{DType::q8_0}, Kept{DType::q4_0}, Kept{DType::q4_1}, Kept{DType::q5_0},
                    Kept{DType::q5_1}, Kept{DType::q4_k}, Kept{DType::q5_k}, Kept{DType::q6_k},
                    Kept{DType::iq4_nl}, Kept{DType::iq4_xs}, Kept{DType::f32}, Kept{DType::f16},
                    Kept{DType::bf16}, Kept{DType::bf16, true}, Kept{DType::q8_0, true},
                    Kept{DType::q4_0, true}, Kept{DType::q4_k, true}, Kept{DType::q6_k, true}),
    [](const auto& info) {
      return std::string(name_of(info.param.type)) + (info.param.on_gpu ? "_gpu" : "");
    });

// device_weights.cuh, in host arithmetic, over all finite scales and all quants.
float finite_scale(uint32_t bits) {
  return (bits & 0x7c00) == 0x7c00 ? 0.0f : f16_to_f32(static_cast<uint16_t>(bits));
}

TEST(MatmulDeviceWeights, Q8IsTheCodecsValueRoundedOnce) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits)
    for (int q = -128; q < 128; ++q) {
      const float d = finite_scale(bits);
      const float quant =
          std::bit_cast<float>(0x4b000000u | static_cast<uint32_t>(q + 128)) - 8388736.0f;
      ASSERT_EQ(static_cast<double>(quant * d), static_cast<double>(d) * q) << bits << " " << q;
    }
}

TEST(MatmulDeviceWeights, Q4IsTheCodecsValueRoundedOnce) {
  const auto is_bf16 = [](float v) { return (std::bit_cast<uint32_t>(v) & 0xffff) == 0; };
  for (uint32_t bits = 0; bits < 0x10000; ++bits)
    for (int q = -8; q < 8; ++q) {
      const float d = finite_scale(bits);
      const float high = std::bit_cast<float>(std::bit_cast<uint32_t>(d) & 0xffff0000u);
      const float low = d - high;
      ASSERT_TRUE(is_bf16(low) && is_bf16(low * static_cast<float>(q))) << bits << " " << q;
      // So an FMA of bf16 rounds this sum, which is exact in f64, and nothing else.
      ASSERT_EQ(static_cast<double>(high) * q + static_cast<double>(low) * q,
                static_cast<double>(d * static_cast<float>(q)));
    }
}

TEST(MatmulDeviceWeights, DecodedIsTheCodecsValueRoundedOnce) {
  for (const DType type : {DType::q8_0, DType::q4_0, DType::q4_k, DType::q6_k}) {
    const long long n = 17, k = 512;
    const Args args = shape_of({type, true}, n, k), as_bf16 = shape_of({DType::bf16, true}, n, k);
    std::vector<uint8_t> plain(bytes_of(type, n * k));
    Rng rng(13);
    fill_blocks(type, n * k)(rng, plain.data());
    std::vector<float> values(static_cast<size_t>(n * k));
    decode(type, plain.data(), values.data(), n * k);
    const Layout& decoded = *layout_named(kOp, "mma16_decoded");
    std::vector<uint8_t> packed(decoded.bytes(&args));
    std::vector<uint16_t> back(values.size());
    decoded.pack(&args, plain.data(), packed.data());
    layout_named(kOp, "mma16")->unpack(&as_bf16, packed.data(), back.data());
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(back[i], f32_to_bf16(values[i])) << i;
  }
}

}  // namespace
}  // namespace millrace::matmul
