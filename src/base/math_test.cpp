#include "base/math.h"

#include <gtest/gtest.h>

#include <limits>
#include <numbers>
#include <vector>

#include "base/math_avx2.h"
#include "base/math_avx512.h"
#include "base/philox.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace millrace {
namespace {

// The functions under test, by number, so that one loop serves every width.
enum Function { kExp, kSigmoid, kSilu, kGelu, kSin, kCos, kLog, kFunctions };
constexpr int kOfSeveral = kGelu + 1;  // the first ones exist for several vectors at once
constexpr const char* kNames[] = {"exp", "sigmoid", "silu", "gelu", "sin", "cos", "log"};

#define MILLRACE_APPLY(space)                        \
  space::Float apply(int function, space::Float x) { \
    switch (function) {                              \
      case kExp:                                     \
        return space::exp(x);                        \
      case kSigmoid:                                 \
        return space::sigmoid(x);                    \
      case kSilu:                                    \
        return space::silu(x);                       \
      case kGelu:                                    \
        return space::gelu(x);                       \
      case kSin:                                     \
        return space::sincos(x).sin;                 \
      case kCos:                                     \
        return space::sincos(x).cos;                 \
      default:                                       \
        return space::log(x);                        \
    }                                                \
  }

#define MILLRACE_APPLY_SEVERAL(space, load, store, width)               \
  void map_several(int function, const float* x, float* y, size_t n) {  \
    constexpr size_t kWidth = width;                                    \
    for (size_t i = 0; i + 4 * kWidth <= n; i += 4 * kWidth) {          \
      space::Float v;                                                   \
      for (size_t j = 0; j < 4; ++j) v.v[j] = load(x + i + j * kWidth); \
      v = function == kExp       ? space::exp(v)                        \
          : function == kSigmoid ? space::sigmoid(v)                    \
          : function == kSilu    ? space::silu(v)                       \
                                 : space::gelu(v);                         \
      for (size_t j = 0; j < 4; ++j) store(y + i + j * kWidth, v.v[j]); \
    }                                                                   \
  }

namespace scalar {
MILLRACE_APPLY(math)
}

MILLRACE_TARGET_AVX2
namespace avx2 {
MILLRACE_APPLY(math::avx2)
void map(int function, const float* x, float* y, size_t n) {
  for (size_t i = 0; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i, apply(function, _mm256_loadu_ps(x + i)));
}
MILLRACE_APPLY_SEVERAL(math::avx2::several, _mm256_loadu_ps, _mm256_storeu_ps, 8)
}  // namespace avx2
MILLRACE_TARGET_END

MILLRACE_TARGET_AVX512
namespace avx512 {
MILLRACE_APPLY(math::avx512)
void map(int function, const float* x, float* y, size_t n) {
  for (size_t i = 0; i + 16 <= n; i += 16)
    _mm512_storeu_ps(y + i, apply(function, _mm512_loadu_ps(x + i)));
}
MILLRACE_APPLY_SEVERAL(math::avx512::several, _mm512_loadu_ps, _mm512_storeu_ps, 16)
}  // namespace avx512
MILLRACE_TARGET_END

#undef MILLRACE_APPLY

// gelu(x) = x / (1 + exp(-t))
double gelu_exponent(double x) {
  return std::sqrt(8 / std::numbers::pi) * (x + 0.044715 * x * x * x);
}

double exact(int function, double x) {
  switch (function) {
    case kExp:
      return std::exp(x);
    case kSigmoid:
      return 1 / (1 + std::exp(-x));
    case kSilu:
      return x / (1 + std::exp(-x));
    case kGelu:
      return x / (1 + std::exp(-gelu_exponent(x)));
    case kSin:
      return std::sin(x);
    case kCos:
      return std::cos(x);
    default:
      return std::log(x);
  }
}

double ulp_of(double value) {
  const int exponent = value == 0 ? -126 : std::max(std::ilogb(value), -126);
  return std::ldexp(1.0, exponent - 23);
}

// Every float whose bits are start + i * stride: all exponents, both signs.
std::vector<float> strided(uint32_t stride) {
  std::vector<float> out;
  for (uint64_t bits = 1; bits < uint64_t{1} << 32; bits += stride)
    out.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return out;
}

// Where things change, and the floats around.
std::vector<float> edges() {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float marks[] = {0.0f,        0x1p-149f,   0x1p-126f,  0x1p-24f,     0.34657359f,
                         0.70710678f, 0.78539816f, 1.0f,       1.4142135f,   1.5707964f,
                         3.1415927f,  17.0f,       87.33654f,  88.0f,        88.72284f,
                         89.0f,       103.27893f,  103.97208f, 104.0f,       32768.0f,
                         1e6f,        0x1p22f,     0x1p31f,    3.4028235e38f};
  std::vector<float> out = {kInf, -kInf, std::nanf(""), -std::nanf("")};
  for (uint32_t nan : {0x7f800001u, 0x7fa12345u, 0x7fffffffu, 0xff800001u, 0xffc54321u})
    out.push_back(std::bit_cast<float>(nan));
  for (float mark : marks)
    for (int step = -40; step <= 40; ++step) {
      const float near =
          std::bit_cast<float>(std::bit_cast<uint32_t>(mark) + static_cast<uint32_t>(step));
      out.insert(out.end(), {near, -near});
    }
  return out;
}

std::vector<float> inputs(uint32_t stride) {
  std::vector<float> out = strided(stride);
  const std::vector<float> more = edges();
  out.insert(out.end(), more.begin(), more.end());
  Rng rng(5);
  for (int i = 0; i < 200000; ++i) out.push_back(30.0f * rng.normal());
  out.resize((out.size() + 63) / 64 * 64);
  return out;
}

using Map = void (*)(int function, const float* x, float* y, size_t n);

void expect_scalar_bits(Map map, int n_functions) {
  const std::vector<float> x = inputs(7919);
  std::vector<float> y(x.size());
  for (int f = 0; f < n_functions; ++f) {
    map(f, x.data(), y.data(), x.size());
    size_t n_different = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const auto got = std::bit_cast<uint32_t>(y[i]);
      const auto want = std::bit_cast<uint32_t>(scalar::apply(f, x[i]));
      if (got == want) continue;
      if (++n_different < 5)
        ADD_FAILURE() << kNames[f] << "(" << std::hexfloat << x[i] << "): " << std::hex << got
                      << ", scalar " << want;
    }
    EXPECT_EQ(n_different, 0u) << kNames[f];
  }
}

TEST(Math, ExpOfNormalResultsGivesTheBitsOfExp) {
  for (float x : inputs(7919)) {
    if (!(std::fabs(x) <= math::kExpNormal)) continue;
    const auto want = std::bit_cast<uint32_t>(math::exp(x));
    ASSERT_EQ(std::bit_cast<uint32_t>(math::exp_normal(x)), want) << x;
  }
}

TEST(Math, Avx2GivesTheScalarBits) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no avx2";
  expect_scalar_bits(avx2::map, kFunctions);
  expect_scalar_bits(avx2::map_several, kOfSeveral);
}

TEST(Math, Avx512GivesTheScalarBits) {
  if (!__builtin_cpu_supports("avx512dq")) GTEST_SKIP() << "this CPU has no avx512";
  expect_scalar_bits(avx512::map, kFunctions);
  expect_scalar_bits(avx512::map_several, kOfSeveral);
}

bool in_domain(int function, float x) {
  if (function == kSin || function == kCos) return std::fabs(x) <= 0x1p22f;
  if (function == kLog) return x > 0 && std::isfinite(x);
  if (function == kExp) return x <= 88.72283f;
  if (function == kGelu) return std::isfinite(x) && x >= -9.9f && std::fabs(x) > 0x1p-124f;
  return std::isfinite(x) && x >= -88.72f;
}

// In units in the last place. gelu's t is off by four roundings (of the constants and the square
// two, of the sum one, of the product one), which count as far as exp(-t) does in 1 + exp(-t); then
// exp is off by up to two, and sum and quotient by one each. A rounding is up to one unit of a
// result just below a power of two.
double bound_of(int function, double x) {
  constexpr double kBounds[] = {1.0, 2.5, 2.5, 4.0, 1.6, 1.6, 1.0};
  if (function != kGelu) return kBounds[function];
  const double t = gelu_exponent(x), share = 1 / (1 + std::exp(t));
  const double roundings = kBounds[kGelu] + 4 * std::fabs(t) * share;
  return roundings * 0x1p-24 * std::fabs(exact(kGelu, x)) / ulp_of(exact(kGelu, x));
}

TEST(Math, IsAccurate) {
  const std::vector<float> x = inputs(4099);
  for (int f = 0; f < kFunctions; ++f) {
    double worst = 0, allowed = 1;
    float worst_at = 0;
    for (float v : x) {
      if (!in_domain(f, v)) continue;
      const double want = exact(f, v), bound = bound_of(f, v);
      const double miss = std::fabs(scalar::apply(f, v) - want) / ulp_of(want);
      if (!(miss * allowed <= worst * bound)) {
        worst = miss;
        allowed = bound;
        worst_at = v;
      }
    }
    EXPECT_LE(worst, allowed) << kNames[f] << " at " << std::hexfloat << worst_at;
    RecordProperty(kNames[f], std::to_string(worst));
  }
}

TEST(Math, SpecialValues) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(math::exp(0.0f), 1.0f);
  EXPECT_EQ(math::exp(kInf), kInf);
  EXPECT_EQ(math::exp(88.8f), kInf);
  EXPECT_EQ(math::exp(-kInf), 0.0f);
  EXPECT_EQ(math::exp(-110.0f), 0.0f);
  EXPECT_EQ(math::exp(-103.9f), 0x1p-149f);
  EXPECT_EQ(math::sigmoid(0.0f), 0.5f);
  EXPECT_EQ(math::sigmoid(kInf), 1.0f);
  EXPECT_EQ(math::sigmoid(-kInf), 0.0f);
  EXPECT_EQ(math::silu(0.0f), 0.0f);
  EXPECT_EQ(math::silu(kInf), kInf);
  EXPECT_EQ(math::silu(-200.0f), 0.0f);
  EXPECT_EQ(math::gelu(0.0f), 0.0f);
  EXPECT_EQ(math::gelu(kInf), kInf);
  EXPECT_EQ(math::gelu(3e38f), 3e38f);  // x^3 overflows
  EXPECT_EQ(math::gelu(-3e38f), 0.0f);
  EXPECT_EQ(math::gelu(0x1p-149f * 4), 0x1p-149f * 2);
  EXPECT_TRUE(std::isnan(math::gelu(-kInf)));
  EXPECT_EQ(math::sincos(0.0f).sin, 0.0f);
  EXPECT_EQ(math::sincos(0.0f).cos, 1.0f);
  EXPECT_TRUE(std::isnan(math::sincos(kInf).sin));
  EXPECT_TRUE(std::isnan(math::sincos(0x1.8p22f).cos));
  EXPECT_EQ(math::log(1.0f), 0.0f);
  EXPECT_EQ(math::log(0.0f), -kInf);
  EXPECT_EQ(math::log(-0.0f), -kInf);
  EXPECT_EQ(math::log(kInf), kInf);
  EXPECT_TRUE(std::isnan(math::log(-1.0f)));
  for (int f = 0; f < kFunctions; ++f) EXPECT_TRUE(std::isnan(scalar::apply(f, std::nanf(""))));
}

}  // namespace
}  // namespace millrace
