#include <immintrin.h>

#include "base/isa.h"
#include "kernels/lanes_avx512.h"
#include "kernels/matmul/floats.h"
#include "kernels/matmul/op.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

MILLRACE_TARGET_AVX512
namespace millrace::matmul::avx512 {
namespace {

using namespace lanes::avx512;

constexpr int kRowsAtOnce = 8, kManyTiles = 2;  // of 32 registers: 8 x 2 sums, 2 weights, one of x

inline Float f32_at(const void* w) {
  return _mm512_load_ps(w);
}
inline Float f16_at(const void* w) {
  return _mm512_cvtph_ps(_mm256_load_si256(static_cast<const __m256i*>(w)));
}
inline Float bf16_at(const void* w) {
  const __m256i bits = _mm256_load_si256(static_cast<const __m256i*>(w));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

#include "kernels/matmul/floats_body.inc"

}  // namespace

Status run_floats(const Args& args, Exec& exec) {
  return run_lane(args, exec);
}

}  // namespace millrace::matmul::avx512
MILLRACE_TARGET_END
