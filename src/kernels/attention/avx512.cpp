#include <immintrin.h>

#include <algorithm>

#include "base/isa.h"
#include "base/math_avx512.h"
#include "kernels/attention/plan.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

MILLRACE_TARGET_AVX512
namespace millrace::attention::avx512 {
namespace {

using Float = __m512;
using math::avx512::exp;

constexpr int kWidth = 16;
constexpr int kWideQueries = 6;  // of 32 registers: 6 x 4 sums, 4 right factors, one left

inline Float load(const float* p) {
  return _mm512_loadu_ps(p);
}
inline void store(float* p, Float x) {
  _mm512_storeu_ps(p, x);
}
inline Float load_half(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
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
inline Float plain_nan(Float x) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), splat(__builtin_nanf("")), x);
}

inline float fold_maximum(Float x) {
  return _mm512_reduce_max_ps(x);
}

// 16 lanes: 8+8, 4+4, 2+2, 1+1.
inline float fold_sum(const Float (&x)[1]) {
  const __m256 v8 = _mm256_add_ps(_mm512_castps512_ps256(x[0]), _mm512_extractf32x8_ps(x[0], 1));
  const __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}

#include "kernels/attention/body.inc"

}  // namespace

Status run(const Args& args, Exec& exec) {
  return run_lane(args, exec);
}

}  // namespace millrace::attention::avx512
MILLRACE_TARGET_END
