#include <immintrin.h>

#include <algorithm>

#include "base/isa.h"
#include "base/math_avx2.h"
#include "kernels/lanes_avx2.h"
#include "kernels/rope/op.h"

MILLRACE_TARGET_AVX2
namespace millrace::rope::avx2 {
namespace {

using lanes::avx2::mask_of;

// The cosines and sines of one row, shared by its heads. Neox order: one entry a pair. Normal
// order: one entry an element, so that a pair's two elements meet theirs in place; the sine of the
// first is negated.
struct Angles {
  alignas(32) float cos[kMaxRotDim];
  alignas(32) float sin[kMaxRotDim];
};

__m256 angles_at(const Args& a, unsigned long long position, long long pair) {
  alignas(32) int phase[8] = {};
  for (long long i = pair; i < std::min(pair + 8, a.rot_dim / 2); ++i)
    phase[i - pair] = static_cast<int>((position * a.turns[i]) >> 32);
  const __m256i phases = _mm256_load_si256(reinterpret_cast<const __m256i*>(phase));
  return _mm256_mul_ps(_mm256_cvtepi32_ps(phases), _mm256_set1_ps(kRadiansPerPhase));
}

// x0 x0 x1 x1 ... x7 x7
void store_twice(float* to, __m256 x) {
  const __m256 lo = _mm256_unpacklo_ps(x, x), hi = _mm256_unpackhi_ps(x, x);
  _mm256_store_ps(to, _mm256_permute2f128_ps(lo, hi, 0x20));
  _mm256_store_ps(to + 8, _mm256_permute2f128_ps(lo, hi, 0x31));
}

void fill_angles(const Args& a, long long row, Angles& angles) {
  const auto position = static_cast<unsigned long long>(static_cast<long long>(a.positions[row]));
  const __m256 magnitude = _mm256_set1_ps(a.magnitude);
  for (long long i = 0; i < a.rot_dim / 2; i += 8) {
    const auto both = math::avx2::sincos(angles_at(a, position, i));
    const __m256 c = _mm256_mul_ps(both.cos, magnitude), s = _mm256_mul_ps(both.sin, magnitude);
    if (a.order == PairOrder::neox) {
      _mm256_store_ps(angles.cos + i, c);
      _mm256_store_ps(angles.sin + i, s);
    } else {
      store_twice(angles.cos + 2 * i, c);
      store_twice(angles.sin + 2 * i, s);
    }
  }
  if (a.order == PairOrder::neox) return;
  const __m256 flip = _mm256_setr_ps(-0.0f, 0, -0.0f, 0, -0.0f, 0, -0.0f, 0);
  for (long long i = 0; i < a.rot_dim; i += 8)
    _mm256_store_ps(angles.sin + i, _mm256_xor_ps(_mm256_load_ps(angles.sin + i), flip));
}

void turn_normal(const float* x, float* y, const Angles& angles, long long rot_dim) {
  for (long long i = 0; i < rot_dim; i += 8) {
    const __m256i live = mask_of(rot_dim - i);
    const __m256 own = _mm256_maskload_ps(x + i, live), other = _mm256_permute_ps(own, 0xb1);
    const __m256 turned = _mm256_mul_ps(other, _mm256_load_ps(angles.sin + i));
    _mm256_maskstore_ps(y + i, live, _mm256_fmadd_ps(own, _mm256_load_ps(angles.cos + i), turned));
  }
}

void turn_neox(const float* x, float* y, const Angles& angles, long long half) {
  for (long long i = 0; i < half; i += 8) {
    const __m256i live = mask_of(half - i);
    const __m256 c = _mm256_load_ps(angles.cos + i), s = _mm256_load_ps(angles.sin + i);
    const __m256 x0 = _mm256_maskload_ps(x + i, live);
    const __m256 x1 = _mm256_maskload_ps(x + half + i, live);
    _mm256_maskstore_ps(y + i, live, _mm256_fmsub_ps(x0, c, _mm256_mul_ps(x1, s)));
    _mm256_maskstore_ps(y + half + i, live, _mm256_fmadd_ps(x1, c, _mm256_mul_ps(x0, s)));
  }
}

void turn_head(const Args& a, const float* x, float* y, const Angles& angles) {
  if (a.order == PairOrder::neox)
    turn_neox(x, y, angles, a.rot_dim / 2);
  else
    turn_normal(x, y, angles, a.rot_dim);
  if (x != y) std::copy(x + a.rot_dim, x + a.head_dim, y + a.rot_dim);
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  Angles angles;
  const Share rows = exec.rows(a.n_rows), columns = exec.columns(a.n_heads * a.head_dim);
  for (long long row = rows.begin; row < rows.end && columns.begin < columns.end; ++row) {
    fill_angles(a, row, angles);
    for (long long at = columns.begin; at < columns.end; at += a.head_dim)
      turn_head(a, static_cast<const float*>(a.x) + row * a.x_stride + at,
                static_cast<float*>(a.y) + row * a.y_stride + at, angles);
  }
  return {};
}

}  // namespace millrace::rope::avx2
MILLRACE_TARGET_END
