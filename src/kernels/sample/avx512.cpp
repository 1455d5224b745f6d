#include <immintrin.h>

#include "base/isa.h"
#include "base/math_avx512.h"
#include "kernels/lanes_avx512.h"
#include "kernels/sample/op.h"
#include "kernels/sample/plan.h"
#include "kernels/sample/rows.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

MILLRACE_TARGET_AVX512
namespace millrace::sample::avx512 {

using namespace lanes::avx512;
namespace one = math::avx512;

namespace {

// -Inf where the lane's bit is cleared.
inline Float select(unsigned bits, Float x) {
  return _mm512_mask_blend_ps(static_cast<__mmask16>(bits), splat(kNever), x);
}

// Whether any value was NaN or +Inf.
class Check {
 public:
  void see(Float x) {
    bad_ =
        static_cast<__mmask16>(bad_ | _mm512_cmp_ps_mask(x, splat(__builtin_inff()), _CMP_NLT_UQ));
  }
  bool is_bad() const { return bad_ != 0; }

 private:
  __mmask16 bad_ = 0;
};

// Sixteen f64 lanes, eight to a vector.
class Lanes {
 public:
  void add(int, Float e) {
    lo_ = _mm512_add_pd(lo_, _mm512_cvtps_pd(_mm512_castps512_ps256(e)));
    hi_ = _mm512_add_pd(hi_, _mm512_cvtps_pd(_mm512_extractf32x8_ps(e, 1)));
  }
  double fold() const {
    const __m512d v8 = _mm512_add_pd(lo_, hi_);
    const __m256d v4 = _mm256_add_pd(_mm512_castpd512_pd256(v8), _mm512_extractf64x4_pd(v8, 1));
    const __m128d v2 = _mm_add_pd(_mm256_castpd256_pd128(v4), _mm256_extractf128_pd(v4, 1));
    return _mm_cvtsd_f64(_mm_add_sd(v2, _mm_unpackhi_pd(v2, v2)));
  }

 private:
  __m512d lo_ = {}, hi_ = {};
};

}  // namespace

#include "kernels/sample/body.inc"

}  // namespace millrace::sample::avx512
MILLRACE_TARGET_END
