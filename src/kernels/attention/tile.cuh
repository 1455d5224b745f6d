// Device pieces of attention over one tile of 32 tokens, one warp each, without a launch.
// Class cuda.attention.chunk256. A chunk of 256 tokens is eight tiles. In a tile, for one query
// head:
//   score[t]: eight lanes per token, lane j an FMA chain over dimensions j, j + 8, ... ascending
//   from +0,
//             folded over j by exchanges of 4, 2, 1; times scale
//   m = greatest score; p[t] = exp(score[t] - m); l = p folded over tokens by exchanges of 16, 8,
//   4, 2, 1 o[d]: 256 / head_dim lanes, lane i an FMA chain over tokens i, i + 256 / head_dim, ...
//   ascending from
//         +0, folded by exchanges of half, a quarter, ... of them
// The tiles of a chunk are weighted by exp(m - greatest m) and folded left in ascending order with
// FMAs; the chunks of a row likewise, but for the product being rounded before it is added. A part
// whose scores are all -Inf weighs nothing. The output is the folded o over the folded l.
#pragma once

#include "base/math_cuda.cuh"

namespace millrace::attention {

inline constexpr int kChunk = 256;
inline constexpr int kTile = 32;
inline constexpr int kTilesPerChunk = kChunk / kTile;
inline constexpr int kPair = 2;  // query heads computed together

__device__ __forceinline__ void unpack_bf16(float (&f)[8], const uint4& raw) {
  const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    f[2 * i] = __uint_as_float(words[i] << 16);
    f[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

// The token of the tile whose score lane `lane` ends up with, and its inverse.
__device__ __forceinline__ int token_of_lane(int lane) {
  return 8 * (lane & 3) + (lane >> 2);
}
__device__ __forceinline__ int lane_of_token(int token) {
  return (token >> 3) | ((token & 7) << 2);
}

// weight of a part with maximum m under the overall maximum
__device__ __forceinline__ float weight_of(float m, float greatest) {
  return m == -INFINITY ? 0.0f : math::cuda::exp(m - greatest);
}

// key(i) gives dimension 8 * i + lane / 4 of the eight tokens 8 * (lane % 4) on. Leaves in `score`
// that of token_of_lane(lane) for each head; q is [head][kDim] in shared memory.
template <int kDim, class Key>
__device__ __forceinline__ void tile_scores(float (&score)[kPair], const float* q, Key key) {
  const int lane = threadIdx.x & 31;
  float sum[kPair][8] = {};
#pragma unroll
  for (int i = 0; i < kDim / 8; ++i) {
    float k[8];
    unpack_bf16(k, key(i));
#pragma unroll
    for (int h = 0; h < kPair; ++h) {
      const float query = q[h * kDim + 8 * i + (lane >> 2)];
#pragma unroll
      for (int t = 0; t < 8; ++t) sum[h][t] = __fmaf_rn(query, k[t], sum[h][t]);
    }
  }
  // Reduce and scatter: each exchange halves the tokens a lane still carries.
#pragma unroll
  for (int h = 0; h < kPair; ++h) {
#pragma unroll
    for (int level = 2; level >= 0; --level) {
      const int half = 1 << level;
      const bool upper = lane & (half << 2);
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        if (t >= half) continue;
        const float keep = upper ? sum[h][t + half] : sum[h][t];
        const float give = upper ? sum[h][t] : sum[h][t + half];
        sum[h][t] = keep + __shfl_xor_sync(~0u, give, half << 2);
      }
    }
    score[h] = sum[h][0];
  }
}

// Turns scores into weights p; tokens from n_live on weigh nothing.
__device__ __forceinline__ void tile_softmax(float (&score)[kPair], int n_live, float scale,
                                             float (&m)[kPair], float (&l)[kPair]) {
  const bool live = token_of_lane(threadIdx.x & 31) < n_live;
#pragma unroll
  for (int h = 0; h < kPair; ++h) {
    const float s = live ? score[h] * scale : -INFINITY;
    float greatest = s;
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) greatest = fmaxf(greatest, __shfl_xor_sync(~0u, greatest, d));
    const float p = live ? math::cuda::exp(s - (greatest == -INFINITY ? 0.0f : greatest)) : 0.0f;
    float sum = p;
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    m[h] = greatest;
    l[h] = sum;
    score[h] = p;
  }
}

// value(i) gives eight dimensions of token i * (256 / kDim) + lane / (kDim / 8); what it gives for
// tokens from n_live on, NaN included, counts as zero. Leaves in every lane the sums of its eight
// dimensions.
template <int kDim, class Value>
__device__ __forceinline__ void tile_output(float (&o)[kPair][8], const float (&p)[kPair],
                                            int n_live, Value value) {
  constexpr int kLanesPerToken = kDim / 8, kTokensPerLoad = 32 / kLanesPerToken;
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int h = 0; h < kPair; ++h)
#pragma unroll
    for (int d = 0; d < 8; ++d) o[h][d] = 0;
#pragma unroll
  for (int i = 0; i < kDim / 8; ++i) {
    const int token = i * kTokensPerLoad + lane / kLanesPerToken;
    uint4 raw = value(i);
    if (n_live < kTile && token >= n_live) raw = make_uint4(0, 0, 0, 0);
    float v[8];
    unpack_bf16(v, raw);
    const int from = lane_of_token(token);
#pragma unroll
    for (int h = 0; h < kPair; ++h) {
      const float weight = __shfl_sync(~0u, p[h], from);
#pragma unroll
      for (int d = 0; d < 8; ++d) o[h][d] = __fmaf_rn(weight, v[d], o[h][d]);
    }
  }
#pragma unroll
  for (int distance = 16; distance >= kLanesPerToken; distance >>= 1)
#pragma unroll
    for (int h = 0; h < kPair; ++h)
#pragma unroll
      for (int d = 0; d < 8; ++d) o[h][d] += __shfl_xor_sync(~0u, o[h][d], distance);
}

}  // namespace millrace::attention
