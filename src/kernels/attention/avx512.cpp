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

using namespace lanes::avx512;
using math::avx512::exp;
namespace several = math::avx512::several;

constexpr int kBlockQueries = 12;  // 12 x 2 sums: converting takes 2 of 26 operations
constexpr int kWideQueries = 6;    // of 32 registers: 6 x 4 sums, 4 right factors, one left
constexpr bool kWidens = true;     // converting costs 12 x 2 sums 2.5 of 27 cycles a step (Zen 4)

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

#include "kernels/attention/body.inc"

}  // namespace

Status run(const Args& args, Exec& exec) {
  return run_lane(args, exec);
}

}  // namespace millrace::attention::avx512
MILLRACE_TARGET_END
