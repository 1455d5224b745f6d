#include <immintrin.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/isa.h"
#include "base/math_avx2.h"
#include "kernels/attention/plan.h"
#include "kernels/lanes_avx2.h"

MILLRACE_TARGET_AVX2
namespace millrace::attention::avx2 {
namespace {

using namespace lanes::avx2;
using math::avx2::exp;
namespace several = math::avx2::several;

constexpr int kBlockQueries = 6;
constexpr int kWideQueries = 3;  // of 16 registers: 3 x 4 sums, 4 right factors in turn, one left
constexpr bool kWidens = false;  // blocks of six fetch K and V from L2 too often: up to 4 % slower

inline Float widen(const F16* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline Float widen(const Bf16* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
inline Float widen(const float* p) {
  return load(p);
}

#include "kernels/attention/body.inc"

}  // namespace

Status run(const Args& args, Exec& exec) {
  return run_lane(args, exec);
}

}  // namespace millrace::attention::avx2
MILLRACE_TARGET_END
