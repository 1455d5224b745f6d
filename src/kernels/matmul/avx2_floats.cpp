#include <immintrin.h>

#include "base/isa.h"
#include "kernels/lanes_avx2.h"
#include "kernels/matmul/floats.h"
#include "kernels/matmul/op.h"

MILLRACE_TARGET_AVX2
namespace millrace::matmul::avx2 {
namespace {

using namespace lanes::avx2;

constexpr int kRowsAtOnce = 6, kManyTiles = 1;  // of 16 registers: 6 x 2 sums, 2 weights, one of x

inline Float f32_at(const void* w) {
  return _mm256_load_ps(static_cast<const float*>(w));
}
inline Float f16_at(const void* w) {
  return _mm256_cvtph_ps(_mm_load_si128(static_cast<const __m128i*>(w)));
}
inline Float bf16_at(const void* w) {
  const __m128i bits = _mm_load_si128(static_cast<const __m128i*>(w));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

#include "kernels/matmul/floats_body.inc"

}  // namespace

Status run_floats(const Args& args, Exec& exec) {
  return run_lane(args, exec);
}

}  // namespace millrace::matmul::avx2
MILLRACE_TARGET_END
