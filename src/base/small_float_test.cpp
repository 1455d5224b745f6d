#include "base/small_float.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <cmath>
#include <limits>

#include "base/isa.h"

namespace millrace {
namespace {

using small_float::Spec;
using small_float::Top;
constexpr float kInf = std::numeric_limits<float>::infinity();

// The definition, in double: no bit tricks.
double meaning(const Spec& s, uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> s.mantissa_bits);
  const int fraction = static_cast<int>(magnitude & ((1u << s.mantissa_bits) - 1));
  const int implied = exponent == 0 ? 0 : 1 << s.mantissa_bits;
  return std::ldexp(implied + fraction, std::max(exponent, 1) - s.bias() - s.mantissa_bits);
}

// Every finite code of both signs means what it should and comes back; between each pair of
// neighbours the tie goes to the even code and the floats beside the tie to the nearer one.
template <Spec s>
void check_every_code() {
  for (uint32_t sign : {0u, s.sign()})
    for (uint32_t code = 0; code <= s.largest(); ++code) {
      const float value = small_float::decode<s>(sign | code);
      ASSERT_EQ(std::fabs(value), meaning(s, code)) << code;
      ASSERT_EQ(std::signbit(value), sign != 0) << code;
      ASSERT_EQ(small_float::encode<s>(value), sign | code);
      if (code == s.largest()) continue;
      const float next = small_float::decode<s>(sign | (code + 1)), tie = (value / 2 + next / 2);
      if (2 * meaning(s, code) < 0x1p-120) continue;  // bf16's denormals: halves are not exact
      ASSERT_EQ(small_float::encode<s>(tie), sign | (code + (code & 1))) << code;
      ASSERT_EQ(small_float::encode<s>(std::nextafter(tie, value)), sign | code);
      ASSERT_EQ(small_float::encode<s>(std::nextafter(tie, next)), sign | (code + 1));
    }
}

// Floats in ascending order give codes in ascending order, and no code is further than its
// neighbours.
template <Spec s>
void check_sweep(uint32_t stride) {
  uint32_t last = 0;
  for (uint32_t bits = 0; bits < 0x7f800000u; bits += stride) {
    const auto code = small_float::encode<s>(std::bit_cast<float>(bits), true);
    ASSERT_GE(code, last) << bits;
    ASSERT_LE(code, s.largest()) << bits;
    ASSERT_EQ(small_float::encode<s>(-std::bit_cast<float>(bits), true), code | s.sign());
    last = code;
  }
  EXPECT_EQ(last, s.largest());
}

TEST(SmallFloat, EveryCode) {
  check_every_code<small_float::kF16>();
  check_every_code<small_float::kBf16>();
  check_every_code<small_float::kE5m2>();
  check_every_code<small_float::kE4m3>();
  check_every_code<small_float::kE2m1>();
}

TEST(SmallFloat, Sweep) {
  check_sweep<small_float::kF16>(4099);
  check_sweep<small_float::kBf16>(4099);
  check_sweep<small_float::kE5m2>(4099);
  check_sweep<small_float::kE4m3>(4099);
  check_sweep<small_float::kE2m1>(4099);
}

TEST(SmallFloat, DenormalTiesOfBf16) {
  for (uint32_t code = 0; code < 256; ++code)
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const bool up = low > 0x8000 || (low == 0x8000 && (code & 1));
      EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(code << 16 | low)), code + up);
    }
}

TEST(SmallFloat, Overflow) {
  EXPECT_EQ(f16_to_f32(f32_to_f16(65519.0f)), 65504.0f);
  EXPECT_EQ(f16_to_f32(f32_to_f16(65520.0f)), kInf);
  EXPECT_EQ(bf16_to_f32(f32_to_bf16(-3.4028235e38f)), -kInf);
  EXPECT_EQ(e5m2_to_f32(f32_to_e5m2(61439.0f)), 57344.0f);
  EXPECT_EQ(e5m2_to_f32(f32_to_e5m2(61440.0f)), kInf);
  EXPECT_EQ(e4m3_to_f32(f32_to_e4m3(464.0f)), 448.0f);
  EXPECT_EQ(f32_to_e4m3(465.0f), 0x7f);
  EXPECT_EQ(f32_to_e4m3(-kInf), 0xff);
  EXPECT_EQ(e4m3_to_f32(f32_to_e4m3_saturating(465.0f)), 448.0f);
  EXPECT_EQ(e4m3_to_f32(f32_to_e4m3_saturating(-kInf)), -448.0f);
  EXPECT_EQ(e2m1_to_f32(f32_to_e2m1(-7.0f)), -6.0f);
  EXPECT_EQ(e2m1_to_f32(f32_to_e2m1(kInf)), 6.0f);
}

TEST(SmallFloat, Nan) {
  const float nan = std::nanf("");
  for (float value : {nan, -nan, std::bit_cast<float>(0x7f800001u)}) {
    EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value))));
    EXPECT_TRUE(std::isnan(e5m2_to_f32(f32_to_e5m2(value))));
    EXPECT_TRUE(std::isnan(e4m3_to_f32(f32_to_e4m3(value))));
    EXPECT_TRUE(std::isnan(e4m3_to_f32(f32_to_e4m3_saturating(value))));
    EXPECT_EQ(e2m1_to_f32(f32_to_e2m1(value)), 6.0f);
    EXPECT_EQ(f32_to_e8m0(value), 255);
  }
  EXPECT_TRUE(std::signbit(e4m3_to_f32(f32_to_e4m3(-nan))));
}

TEST(SmallFloat, E8m0) {
  for (int code = 0; code < 255; ++code) {
    const float value = e8m0_to_f32(static_cast<uint8_t>(code));
    ASSERT_EQ(value, std::ldexp(1.0, code - 127));
    ASSERT_EQ(f32_to_e8m0(value), code);
    if (code == 254) continue;
    const float tie = 1.5f * value;
    ASSERT_EQ(f32_to_e8m0(tie), code + (code & 1));
    ASSERT_EQ(f32_to_e8m0(std::nextafter(tie, 0.0f)), code);
    ASSERT_EQ(f32_to_e8m0(std::nextafter(tie, kInf)), code + 1);
  }
  EXPECT_TRUE(std::isnan(e8m0_to_f32(255)));
  for (float tiny : {0.0f, -0.0f, 0x1p-149f}) EXPECT_EQ(f32_to_e8m0(tiny), 0);
  EXPECT_EQ(f32_to_e8m0(3.4028235e38f), 254);
  for (float bad : {-1.0f, -0x1p-149f, kInf, -kInf}) EXPECT_EQ(f32_to_e8m0(bad), 255);
}

MILLRACE_TARGET_AVX2
uint32_t hardware_decode(uint32_t code) {
  return std::bit_cast<uint32_t>(_cvtsh_ss(static_cast<unsigned short>(code)));
}
uint32_t hardware_encode(uint32_t bits) {
  return _cvtss_sh(std::bit_cast<float>(bits), _MM_FROUND_TO_NEAREST_INT);
}
MILLRACE_TARGET_END

TEST(SmallFloat, F16IsTheHardwares) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no avx2";
  for (uint32_t code = 0; code < 0x10000; ++code)
    ASSERT_EQ(std::bit_cast<uint32_t>(f16_to_f32(static_cast<uint16_t>(code))),
              hardware_decode(code));
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 1021)
    ASSERT_EQ(f32_to_f16(std::bit_cast<float>(static_cast<uint32_t>(bits))),
              hardware_encode(static_cast<uint32_t>(bits)));
}

static_assert(e2m1_to_f32(7) == 6.0f && e4m3_to_f32(0x7e) == 448.0f && f32_to_f16(1.0f) == 0x3c00);

}  // namespace
}  // namespace millrace
