// Every packed layout gives the file's bytes back, whatever they are, and adds none but padding.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/philox.h"
#include "kernels/matmul/op.h"
#include "tensor/format.h"

namespace millrace::matmul {
namespace {

Args shape_of(DType type, long long n, long long k) {
  return {.w = nullptr,
          .x = nullptr,
          .y = nullptr,
          .n_rows = 1,
          .n = n,
          .k = k,
          .w_type = type,
          .x_type = is_block_format(type) ? DType::q8_row : DType::f32,
          .y_type = DType::f32};
}

// The layout of the first variant that takes these args.
const Layout& layout_for(const Args& args) {
  for (const Variant& variant : variants())
    if (variant.takes != nullptr && variant.takes(&args)) return *layout_named(kOp, variant.layout);
  ADD_FAILURE() << "no packed layout for " << name_of(args.w_type);
  return kOp.layouts().front();
}

class MatmulPack : public testing::TestWithParam<DType> {
 protected:
  // Of an odd number of blocks, and of two.
  static long long odd_k() { return 3LL * format_of(GetParam()).block_elems; }
  static long long even_k() { return 2LL * format_of(GetParam()).block_elems; }
};

TEST_P(MatmulPack, UnpackIsTheInverseOfPack) {
  for (long long n : {1, 15, 16, 17, 40}) {
    const Args args = shape_of(GetParam(), n, odd_k());
    const Layout& layout = layout_for(args);
    Rng rng(7, static_cast<uint64_t>(n));
    std::vector<uint8_t> plain(bytes_of(GetParam(), n * args.k)), back(plain.size(), 0xcc);
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
  const auto row_bytes = bytes_of(GetParam(), args.k);
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
  const size_t three_tiles = bytes_of(GetParam(), 48 * even_k());
  for (long long n : {33, 48}) {
    const Args args = shape_of(GetParam(), n, even_k());
    EXPECT_EQ(layout_for(args).bytes(&args), three_tiles) << n << " outputs";
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, MatmulPack,
                         testing::Values(DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0,
                                         DType::q5_1, DType::q4_k, DType::q5_k, DType::q6_k,
                                         DType::iq4_nl, DType::iq4_xs, DType::f32, DType::f16,
                                         DType::bf16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace millrace::matmul
