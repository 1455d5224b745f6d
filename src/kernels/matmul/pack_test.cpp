// Layout tiles16 gives the file's bytes back, whatever they are.
#include "kernels/matmul/pack.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/philox.h"
#include "tensor/format.h"

namespace millrace::matmul::tiles16 {
namespace {

Args shape_of(DType type, long long n, long long k) {
  return {.w = nullptr,
          .x = nullptr,
          .y = nullptr,
          .n_rows = 1,
          .n = n,
          .k = k,
          .w_type = type,
          .x_type = DType::q8_row,
          .y_type = DType::f32};
}

class Tiles16 : public testing::TestWithParam<DType> {};

TEST_P(Tiles16, UnpackIsTheInverseOfPack) {
  for (long long n : {1, 15, 16, 17, 40}) {
    const Args args = shape_of(GetParam(), n, 96);
    Rng rng(7, static_cast<uint64_t>(n));
    std::vector<uint8_t> plain(bytes_of(GetParam(), n * 96)), back(plain.size(), 0xcc);
    for (uint8_t& byte : plain) byte = static_cast<uint8_t>(rng.next_u32());
    std::vector<uint8_t> packed(packed_bytes(args), 0xcc);
    pack(args, plain.data(), packed.data());
    unpack(args, packed.data(), back.data());
    EXPECT_EQ(plain, back) << n << " outputs";
  }
}

TEST_P(Tiles16, AddsNoBytesToWholeTiles) {
  EXPECT_EQ(packed_bytes(shape_of(GetParam(), 48, 64)), bytes_of(GetParam(), 48 * 64));
  EXPECT_EQ(packed_bytes(shape_of(GetParam(), 33, 64)), bytes_of(GetParam(), 48 * 64));
}

INSTANTIATE_TEST_SUITE_P(Formats, Tiles16,
                         testing::Values(DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0,
                                         DType::q5_1),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace millrace::matmul::tiles16
