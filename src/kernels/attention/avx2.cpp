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

using Float = __m256;
using lanes::avx2::largest_of;
using lanes::avx2::mask_of;
using lanes::avx2::plain_nan;
using math::avx2::exp;
namespace several = math::avx2::several;

constexpr int kWidth = 8;
constexpr int kBlockQueries = 6;
constexpr int kWideQueries = 3;  // of 16 registers: 3 x 4 sums, 4 right factors in turn, one left

inline Float load(const float* p) {
  return _mm256_loadu_ps(p);
}
inline void store(float* p, Float x) {
  _mm256_storeu_ps(p, x);
}
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
inline Float splat(float x) {
  return _mm256_set1_ps(x);
}
inline float first_of(Float x) {
  return _mm256_cvtss_f32(x);
}
inline Float fma(Float a, Float b, Float c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Float add(Float a, Float b) {
  return _mm256_add_ps(a, b);
}
inline Float subtract(Float a, Float b) {
  return _mm256_sub_ps(a, b);
}
inline Float multiply(Float a, Float b) {
  return _mm256_mul_ps(a, b);
}
inline Float maximum(Float a, Float b) {
  return _mm256_max_ps(a, b);
}

// Lanes outside [begin, end) hold `other`.
inline Float lanes_within(Float x, long long begin, long long end, float other) {
  const __m256i live = _mm256_andnot_si256(mask_of(begin), mask_of(end));
  return _mm256_blendv_ps(splat(other), x, _mm256_castsi256_ps(live));
}

inline float fold_sum(const Float (&x)[2]) {
  return lanes::avx2::fold(x[0], x[1]);
}

#include "kernels/attention/body.inc"

}  // namespace

Status run(const Args& args, Exec& exec) {
  return run_lane(args, exec);
}

}  // namespace millrace::attention::avx2
MILLRACE_TARGET_END
