// Decode attention on any device since sm_80: a block per (row, KV head, chunk of 256 tokens), a
// warp per tile of 32. A warp's K and V, 8 KB each at head_dim 128, are requested at once and wait
// in registers: two blocks of eight warps keep 256 KB per SM in flight, several times what the
// memory's latency needs. Blocks are small and many, so any batch balances and there is no wave
// cliff. A second kernel folds the chunks.
#include <cuda_runtime.h>

#include "kernels/attention/args.h"
#include "kernels/attention/device.h"
#include "kernels/attention/tile.cuh"
#include "kernels/device.cuh"

namespace millrace::attention {
namespace {

constexpr int kThreads = 32 * kTilesPerChunk;
constexpr int kWindow =
    16;  // loads a lane has in flight: 8 KB a warp, and no spills at 128 registers
constexpr int kFoldDims = 32;  // dimensions one fold block owns
constexpr int kLongThreads = 512;
constexpr int kShortThreads = 128;
constexpr int kShort = 32;  // chunks the short fold takes: a register each

// What the chunks leave for the fold: [row][head][chunk] of (m, l), and of o[head_dim].
struct Partials {
  float2* ml;
  float* o;
  int n_chunks;  // room per row and head
};

int max_chunks(const Args& a) {
  return static_cast<int>((a.max_pages * a.page_tokens + kChunk - 1) / kChunk);
}

__host__ __device__ long long partial_at(const Args& a, const Partials& p, long long row,
                                         long long head, long long chunk) {
  return (row * a.n_heads + head) * p.n_chunks + chunk;
}

template <int kDim>
struct TileSums {  // of a chunk's tiles, for a pair of heads
  float m[kTilesPerChunk][kPair], l[kTilesPerChunk][kPair];
  float o[kTilesPerChunk][kPair][kDim];
};

// Where a tile of 32 tokens lies in the cache. Pages are a compile-time length, so all of a warp's
// loads are constant offsets from one or two pointers. Tokens past the row's last are loaded like
// the others, as far as their page is one the row may read, and dropped later.
template <int kDim, int kPage>
struct TileSource {
  static constexpr int kLoads = kDim / 8;
  static constexpr int kPages = kPage < kTile ? kTile / kPage : 1;  // that a tile touches
  static constexpr int kTokensPerLoad = kTile / kLoads;
  const unsigned short* keys[kPages];
  const unsigned short* values[kPages];

  __device__ TileSource(const Args& a, int sequence, long long kv, int t0, int last) {
    const int lane = threadIdx.x & 31;
    const int* table = a.tables + sequence * a.max_pages;
#pragma unroll
    for (int i = 0; i < kPages; ++i) {
      const int t = min(t0 + i * kPage, last);
      const long long block = (table[t / kPage] * a.n_kv_heads + kv) * (kDim * kPage);
      values[i] =
          static_cast<const unsigned short*>(a.v_pages) + block + t0 % kPage * kDim + lane * 8;
      keys[i] = static_cast<const unsigned short*>(a.k_pages) + block + t0 % kPage;
    }
    // Keys: lane / 4 is the dimension, lane % 4 the group of eight tokens.
    const int octet = 8 * (lane & 3);
#pragma unroll
    for (int i = 1; i < kPages; ++i)
      if (octet >= i * kPage) keys[0] = keys[i];
    keys[0] += (lane >> 2) * kPage + octet % kPage;
  }

  // Load i of the tile: first all of K, then all of V.
  __device__ __forceinline__ uint4 load(int i) const {
    if (i < kLoads) return __ldcs(reinterpret_cast<const uint4*>(keys[0] + 8 * i * kPage));
    const int token = (i - kLoads) * kTokensPerLoad;
    const auto* from = values[token / kPage % kPages] + token % kPage * kDim;
    return __ldcs(reinterpret_cast<const uint4*>(from));
  }
};

// A tile's loads in order, kWindow of them in flight.
template <int kDim, int kPage>
struct TileStream {
  const TileSource<kDim, kPage>& source;
  uint4 window[kWindow];

  __device__ __forceinline__ explicit TileStream(const TileSource<kDim, kPage>& from)
      : source(from) {
#pragma unroll
    for (int i = 0; i < kWindow; ++i) window[i] = source.load(i);
  }
  // Gives load i, taken in ascending order, and requests the one that takes its place.
  __device__ __forceinline__ uint4 take(int i) {
    const uint4 loaded = window[i % kWindow];
    if (i + kWindow < 2 * source.kLoads) window[i % kWindow] = source.load(i + kWindow);
    return loaded;
  }
};

template <int kDim>
__device__ __forceinline__ void keep_tile(TileSums<kDim>& sums, const float (&m)[kPair],
                                          const float (&l)[kPair], const float (&o)[kPair][8]) {
  constexpr int kLanesPerToken = kDim / 8;
  const int tile = threadIdx.x >> 5, lane = threadIdx.x & 31;
#pragma unroll
  for (int h = 0; h < kPair; ++h) {
    if (lane == 0) {
      sums.m[tile][h] = m[h];
      sums.l[tile][h] = l[h];
    }
    if (lane >= kLanesPerToken) continue;
    auto* to = reinterpret_cast<float4*>(&sums.o[tile][h][lane * 8]);
    to[0] = make_float4(o[h][0], o[h][1], o[h][2], o[h][3]);
    to[1] = make_float4(o[h][4], o[h][5], o[h][6], o[h][7]);
  }
}

template <int kDim>
__device__ __forceinline__ void fold_tiles(const Partials& p, const TileSums<kDim>& sums,
                                           long long at, int i, int n_tiles) {
  const int h = i / kDim, d = i % kDim;
  float greatest = sums.m[0][h];
  for (int w = 1; w < n_tiles; ++w) greatest = fmaxf(greatest, sums.m[w][h]);
  float l = 0, o = 0;
  for (int w = 0; w < n_tiles; ++w) {
    const float weight = weight_of(sums.m[w][h], greatest);
    l = __fmaf_rn(weight, sums.l[w][h], l);
    o = __fmaf_rn(weight, sums.o[w][h][d], o);
  }
  p.o[at * kDim + d] = o;
  if (d == 0) p.ml[at] = make_float2(greatest, l);
}

template <int kDim, int kPage>
__global__ void __launch_bounds__(kThreads, 2) chunk_kernel(Args a, Partials p) {
  __shared__ float q[kPair * kDim];
  __shared__ TileSums<kDim> sums;
  wait_for_previous_kernel();
  const long long row = blockIdx.z, kv = blockIdx.y;
  const int sequence = a.sequences[row],
            last = a.positions[row];  // both in flight before the branch
  const int first = static_cast<int>(blockIdx.x) * kChunk;
  if (first > last) return;
  const int t0 = first + static_cast<int>(threadIdx.x >> 5) * kTile, n_live = last + 1 - t0;
  const int n_tiles = min(kTilesPerChunk, (last - first) / kTile + 1);
  const auto group = static_cast<int>(a.n_heads / a.n_kv_heads);
  const TileSource<kDim, kPage> source(a, sequence, kv, t0, last);
  for (int h0 = 0; h0 < group; h0 += kPair) {
    TileStream<kDim, kPage> stream(source);
    const long long head0 = kv * group + h0;
    for (int i = threadIdx.x; i < kPair * kDim; i += kThreads) {
      const bool live = h0 + i / kDim < group;
      q[i] = live ? load_element(a.q, a.q_type == DType::bf16, row * a.q_stride + head0 * kDim + i)
                  : 0.0f;
    }
    __syncthreads();
    if (n_live > 0) {
      float p_or_score[kPair], m[kPair], l[kPair], o[kPair][8];
      tile_scores<kDim>(p_or_score, q, [&](int i) { return stream.take(i); });
      tile_softmax(p_or_score, n_live, a.scale, m, l);
      tile_output<kDim>(o, p_or_score, n_live, [&](int i) { return stream.take(kDim / 8 + i); });
      keep_tile<kDim>(sums, m, l, o);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kPair * kDim; i += kThreads)
      if (h0 + i / kDim < group)
        fold_tiles<kDim>(p, sums, partial_at(a, p, row, head0 + i / kDim, blockIdx.x), i, n_tiles);
  }
  let_next_kernel_start();
}

// The chunks' weights of one (row, head) and what they make of l; returns the sum of the latter.
template <int kThreadsOfFold>
struct ChunkWeights {
  float weight[kThreadsOfFold], l[kThreadsOfFold], greatest[kThreadsOfFold / 32];

  // The greatest m of all chunks.
  __device__ float greatest_of(const float2* ml, int n) {
    float m = -INFINITY;
    for (int c = threadIdx.x; c < n; c += kThreadsOfFold) m = fmaxf(m, ml[c].x);
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    if (threadIdx.x % 32 == 0) greatest[threadIdx.x / 32] = m;
    __syncthreads();
    for (float other : greatest) m = fmaxf(m, other);
    return m;
  }

  // Weights of the chunks from c0 on, one a thread.
  __device__ void weigh(const float2* ml, int c0, int n, float greatest_m) {
    const int c = c0 + static_cast<int>(threadIdx.x);
    if (c >= n) return;
    weight[threadIdx.x] = weight_of(ml[c].x, greatest_m);
    l[threadIdx.x] = weight[threadIdx.x] * ml[c].y;
  }
};

// Adds values[0], values[kStride], ... to sum, in order; requests sixteen before it adds the first.
template <int kStride>
__device__ __forceinline__ float add_in_order(float sum, const float* values, int n) {
  for (int c = 0; c < n; c += 16) {
    float batch[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) batch[i] = values[(c + i) * kStride];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      if (c + i < n) sum += batch[i];
  }
  return sum;
}

struct FoldPlace {
  long long row, head, base;  // base: of this (row, head) in the partials
  int n;                      // its chunks
};

__device__ __forceinline__ FoldPlace fold_place(const Args& a, const Partials& p) {
  const long long head = blockIdx.x, row = blockIdx.y;
  const int last = a.positions[row];
  return {row, head, partial_at(a, p, row, head, 0), last < 0 ? 0 : last / kChunk + 1};
}

__device__ __forceinline__ void store_fold(const Args& a, const FoldPlace& at, int d, float o,
                                           float l) {
  const float out = at.n == 0 ? 0.0f : __fdiv_rn(o, l);
  store_element(a.out, a.q_type == DType::bf16, (at.row * a.n_heads + at.head) * a.head_dim + d,
                out);
}

// Up to kShort chunks: a thread per dimension, all its chunks in flight.
__global__ void __launch_bounds__(kShortThreads) fold_short_kernel(Args a, Partials p) {
  __shared__ ChunkWeights<kShortThreads> chunks;
  wait_for_previous_kernel();
  const FoldPlace at = fold_place(a, p);
  const auto dim = static_cast<int>(a.head_dim);
  const int d = static_cast<int>(threadIdx.x) % dim;
  float fetched[kShort];
#pragma unroll
  for (int c = 0; c < kShort; ++c)
    if (c < at.n) fetched[c] = __ldcs(p.o + (at.base + c) * dim + d);
  const float greatest = chunks.greatest_of(p.ml + at.base, at.n);
  chunks.weigh(p.ml + at.base, 0, at.n, greatest);
  __syncthreads();
  let_next_kernel_start();
  float sum = 0;
#pragma unroll
  for (int c = 0; c < kShort; ++c)
    if (c < at.n) sum += chunks.weight[c] * fetched[c];
  if (threadIdx.x < dim) store_fold(a, at, d, sum, add_in_order<1>(0, chunks.l, at.n));
}

// Many chunks: a block owns kFoldDims dimensions, all its warps fetch and weigh, one adds: the
// chain is short, its memory latency is not.
__global__ void __launch_bounds__(kLongThreads) fold_long_kernel(Args a, Partials p) {
  constexpr int kWarps = kLongThreads / 32, kLoads = 16, kStage = kWarps * kLoads;
  __shared__ ChunkWeights<kLongThreads> chunks;
  __shared__ float o[kStage][kFoldDims], sum_l;
  wait_for_previous_kernel();
  const FoldPlace at = fold_place(a, p);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int d = static_cast<int>(blockIdx.z) * kFoldDims + lane;
  float fetched[kLoads];
  const auto fetch = [&](int c0) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      if (const int c = c0 + i * kWarps + warp; c < at.n)
        fetched[i] = __ldcs(p.o + (at.base + c) * a.head_dim + d);
  };
  fetch(0);
  const float greatest = chunks.greatest_of(p.ml + at.base, at.n);
  float sum = 0;
  for (int c0 = 0; c0 < at.n; c0 += kStage) {
    const int n_stage = min(kStage, at.n - c0);
    if (threadIdx.x < kStage) chunks.weigh(p.ml + at.base, c0, at.n, greatest);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      o[i * kWarps + warp][lane] = chunks.weight[i * kWarps + warp] * fetched[i];
    __syncthreads();
    fetch(c0 + kStage);
    if (warp == 0) sum = add_in_order<kFoldDims>(sum, &o[0][lane], n_stage);
    if (warp == 1 && lane == 0) sum_l = add_in_order<1>(c0 == 0 ? 0.0f : sum_l, chunks.l, n_stage);
    __syncthreads();
  }
  let_next_kernel_start();
  if (warp == 0) store_fold(a, at, d, sum, sum_l);
}

using Kernel = void (*)(Args, Partials);

template <int kDim>
Kernel kernel_of(long long page_tokens) {
  switch (page_tokens) {
    case 16:
      return chunk_kernel<kDim, 16>;
    case 32:
      return chunk_kernel<kDim, 32>;
    case 64:
      return chunk_kernel<kDim, 64>;
    case 128:
      return chunk_kernel<kDim, 128>;
    default:
      return chunk_kernel<kDim, 256>;
  }
}

Partials partials_in(const Args& a, void* workspace) {
  const int n_chunks = max_chunks(a);
  auto* ml = static_cast<float2*>(workspace);
  return {ml, reinterpret_cast<float*>(ml + a.n_rows * a.n_heads * n_chunks), n_chunks};
}

}  // namespace

bool takes_sm80(const Args& a) {
  return a.kv_type == DType::bf16 && (a.q_type == DType::bf16 || a.q_type == DType::f32) &&
         (a.head_dim == 64 || a.head_dim == 128) && a.n_rows <= 65535 && a.n_kv_heads <= 65535;
}

size_t sm80_workspace_bytes(const Args& a, int) {
  return static_cast<size_t>(a.n_rows * a.n_heads * max_chunks(a)) *
         (2 + static_cast<size_t>(a.head_dim)) * 4;
}

int launch_sm80(const Args& a, void* stream, void* workspace) {
  if (a.n_rows == 0 || a.n_heads == 0) return cudaSuccess;
  const Partials p = partials_in(a, workspace);
  const auto rows = static_cast<unsigned>(a.n_rows), heads = static_cast<unsigned>(a.n_heads);
  const dim3 chunks(static_cast<unsigned>(p.n_chunks), static_cast<unsigned>(a.n_kv_heads), rows);
  const Kernel kernel =
      a.head_dim == 64 ? kernel_of<64>(a.page_tokens) : kernel_of<128>(a.page_tokens);
  if (int e = overlapped_launch(kernel, {chunks, kThreads, 0}, stream, a, p); e != cudaSuccess)
    return e;
  // Either fold adds in the same order, so every bit is the same.
  if (p.n_chunks <= kShort)
    return overlapped_launch(fold_short_kernel, {dim3(heads, rows), kShortThreads, 0}, stream, a,
                             p);
  const dim3 slices(heads, rows, static_cast<unsigned>(a.head_dim) / kFoldDims);
  return overlapped_launch(fold_long_kernel, {slices, kLongThreads, 0}, stream, a, p);
}

}  // namespace millrace::attention
