#include <immintrin.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/isa.h"
#include "base/math_avx512.h"
#include "kernels/attention/plan.h"
#include "kernels/lanes_avx512.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

MILLRACE_TARGET_AVX512
namespace millrace::attention::avx512 {
namespace {

using Float = __m512;
using lanes::avx512::largest_of;
using lanes::avx512::mask_of;
using lanes::avx512::plain_nan;
using math::avx512::exp;
namespace several = math::avx512::several;

constexpr int kWidth = 16;
constexpr int kBlockQueries = 12;  // 12 x 2 sums: converting takes 2 of 26 operations
constexpr int kWideQueries = 6;    // of 32 registers: 6 x 4 sums, 4 right factors, one left

inline Float load(const float* p) {
  return _mm512_loadu_ps(p);
}
inline void store(float* p, Float x) {
  _mm512_storeu_ps(p, x);
}
inline Float widen(const F16* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline Float widen(const Bf16* p) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
inline Float widen(const float* p) {
  return load(p);
}
inline Float splat(float x) {
  return _mm512_set1_ps(x);
}
inline float first_of(Float x) {
  return _mm512_cvtss_f32(x);
}
inline Float fma(Float a, Float b, Float c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline Float add(Float a, Float b) {
  return _mm512_add_ps(a, b);
}
inline Float subtract(Float a, Float b) {
  return _mm512_sub_ps(a, b);
}
inline Float multiply(Float a, Float b) {
  return _mm512_mul_ps(a, b);
}
inline Float maximum(Float a, Float b) {
  return _mm512_max_ps(a, b);
}

// Lanes outside [begin, end) hold `other`.
inline Float lanes_within(Float x, long long begin, long long end, float other) {
  const auto live = static_cast<__mmask16>(mask_of(end) & ~mask_of(begin));
  return _mm512_mask_blend_ps(live, splat(other), x);
}

inline float fold_sum(const Float (&x)[1]) {
  return lanes::avx512::fold(x[0]);
}

#include "kernels/attention/body.inc"

}  // namespace

Status run(const Args& args, Exec& exec) {
  return run_lane(args, exec);
}

}  // namespace millrace::attention::avx512
MILLRACE_TARGET_END
