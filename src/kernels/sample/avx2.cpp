#include <immintrin.h>

#include "base/isa.h"
#include "base/math_avx2.h"
#include "kernels/lanes_avx2.h"
#include "kernels/sample/op.h"
#include "kernels/sample/plan.h"
#include "kernels/sample/rows.h"

MILLRACE_TARGET_AVX2
namespace millrace::sample::avx2 {

using namespace lanes::avx2;
namespace one = math::avx2;

namespace {

// -Inf where the lane's bit is cleared.
inline Float select(unsigned bits, Float x) {
  const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i set = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), bit);
  return _mm256_blendv_ps(splat(kNever), x, _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, bit)));
}

// Whether any value was NaN or +Inf.
class Check {
 public:
  void see(Float x) {
    bad_ = _mm256_or_ps(bad_, _mm256_cmp_ps(x, splat(__builtin_inff()), _CMP_NLT_UQ));
  }
  bool is_bad() const { return _mm256_movemask_ps(bad_) != 0; }

 private:
  Float bad_ = {};
};

// Sixteen f64 lanes, four to a vector.
class Lanes {
 public:
  void add(int half, Float e) {
    v_[2 * half] = _mm256_add_pd(v_[2 * half], _mm256_cvtps_pd(_mm256_castps256_ps128(e)));
    v_[2 * half + 1] =
        _mm256_add_pd(v_[2 * half + 1], _mm256_cvtps_pd(_mm256_extractf128_ps(e, 1)));
  }
  double fold() const {
    const __m256d v4 = _mm256_add_pd(_mm256_add_pd(v_[0], v_[2]), _mm256_add_pd(v_[1], v_[3]));
    const __m128d v2 = _mm_add_pd(_mm256_castpd256_pd128(v4), _mm256_extractf128_pd(v4, 1));
    return _mm_cvtsd_f64(_mm_add_sd(v2, _mm_unpackhi_pd(v2, v2)));
  }

 private:
  __m256d v_[4] = {};
};

}  // namespace

#include "kernels/sample/body.inc"

}  // namespace millrace::sample::avx2
MILLRACE_TARGET_END
