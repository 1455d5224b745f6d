// Decode attention on any device since sm_80: a block per (row, KV head, chunk of 256 tokens), a
// warp per tile of 32. A warp's K and V, 8 KB each at head_dim 128, are requested at once and wait
// in registers: two blocks of eight warps keep 256 KB per SM in flight, several times what the
// memory's latency needs. Blocks are small and many, so any batch balances and there is no wave
// cliff. A second kernel folds the chunks. While it, or whatever else comes before the chunks,
// ends, the first blocks already fetch their keys into L2.
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
constexpr int kShortThreads = 128;
constexpr int kShort = 64;  // chunks the short fold takes: a register each
constexpr int kLongThreads = 1024;
constexpr int kFoldDims = 16;  // dimensions one block of the long fold owns
constexpr int kStage = 256;    // chunks the long fold has in flight

// What the chunks leave for the fold: [row][head][chunk] of (m, l), and of o[head_dim].
struct Partials {
  float2* ml;
  float* o;
  int n_chunks;      // room per row and head
  unsigned n_ahead;  // blocks that fetch their keys ahead
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
      const long long block = table[t / kPage] * a.page_stride + kv * (kDim * kPage);
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

// Asks for the block's keys in L2 before the previous kernel has ended. What that one may still be
// writing is read for a hint alone: a stale page id costs a fetch and never a bit, and nothing of
// it stays in L1.
template <int kDim, int kPage>
__device__ __forceinline__ void fetch_ahead(const Args& a, unsigned n_ahead) {
#if __CUDA_ARCH__ >= 900
  if (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z) >= n_ahead) return;
  constexpr int kPages = kChunk / kPage, kThreadsPerPage = kThreads / kPages, kLine = 128;
  const int sequence = __ldcg(a.sequences + blockIdx.z), last = __ldcg(a.positions + blockIdx.z);
  const int t = static_cast<int>(blockIdx.x * kChunk + threadIdx.x / kThreadsPerPage * kPage);
  if (sequence < 0 || sequence >= a.n_seqs || t > last || t / kPage >= a.max_pages) return;
  const int page = __ldcg(a.tables + sequence * a.max_pages + t / kPage);
  if (page < 0 || page >= a.n_pages) return;
  constexpr int kBlockBytes = kDim * kPage * 2;  // of one KV head
  const char* keys =
      static_cast<const char*>(a.k_pages) + page * a.page_stride * 2 + blockIdx.y * kBlockBytes;
  for (int at = threadIdx.x % kThreadsPerPage * kLine; at < kBlockBytes;
       at += kThreadsPerPage * kLine)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(keys + at));
#endif
}

template <int kDim, int kPage>
__global__ void __launch_bounds__(kThreads, 2) chunk_kernel(Args a, Partials p) {
  __shared__ float q[kPair * kDim];
  __shared__ TileSums<kDim> sums;
  fetch_ahead<kDim, kPage>(a, p.n_ahead);
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

// The chunks' weights of one (row, head) and what they make of l, a stage at a time.
template <int kThreadsOfFold, int kChunks>
struct ChunkWeights {
  static constexpr int kWarps = kThreadsOfFold / 32;
  float weight[kChunks], l[kChunks], greatest[kWarps];

  // The greatest m of n chunks; own is that of chunk threadIdx.x, where there is one.
  __device__ float greatest_of(const float2* ml, float2 own, int n) {
    const int thread = static_cast<int>(threadIdx.x);
    float m = thread < n ? own.x : -INFINITY;
    for (int c = thread + kThreadsOfFold; c < n; c += kThreadsOfFold) m = fmaxf(m, ml[c].x);
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    if (thread % 32 == 0) greatest[thread / 32] = m;
    __syncthreads();
    m = greatest[thread % kWarps];
#pragma unroll
    for (int d = kWarps / 2; d > 0; d >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    return m;
  }

  // A chunk a thread.
  __device__ void weigh(float2 ml, float greatest_m) {
    if (threadIdx.x >= kChunks) return;
    weight[threadIdx.x] = weight_of(ml.x, greatest_m);
    l[threadIdx.x] = weight[threadIdx.x] * ml.y;
  }
};

// Adds values[0], values[kStride], ... to sum, in order; requests sixteen before it adds the first.
template <int kStride>
__device__ __forceinline__ float add_in_order(float sum, const float* values, int n) {
  int c = 0;
  for (; c + 16 <= n; c += 16) {
    float batch[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) batch[i] = values[(c + i) * kStride];
#pragma unroll
    for (int i = 0; i < 16; ++i) sum += batch[i];
  }
  for (; c < n; ++c) sum += values[c * kStride];
  return sum;
}

// What a fold asks for before it knows how many chunks there are: there is room for all of them,
// and what lies past the last is dropped.
struct FoldPlace {
  long long row, head, base;  // base: of this (row, head) in the partials
  int last;
  float2 own;  // (m, l) of chunk threadIdx.x

  __device__ FoldPlace(const Args& a, const Partials& p)
      : row(blockIdx.y),
        head(blockIdx.x),
        base(partial_at(a, p, row, head, 0)),
        last(a.positions[row]),
        own(ml_at(p, 0, p.n_chunks)) {}

  __device__ int n() const { return last < 0 ? 0 : last / kChunk + 1; }
  __device__ float2 ml_at(const Partials& p, int c0, int end) const {
    const int c = c0 + static_cast<int>(threadIdx.x);
    return c < end ? __ldcg(p.ml + base + c) : make_float2(0, 0);
  }
  __device__ void store(const Args& a, int d, float o, float l) const {
    const float out = n() == 0 ? 0.0f : __fdiv_rn(o, l);
    store_element(a.out, a.q_type == DType::bf16, (row * a.n_heads + head) * a.head_dim + d, out);
  }
};

// Up to kShort chunks: a thread per dimension, all its chunks in flight.
__global__ void __launch_bounds__(kShortThreads) fold_short_kernel(Args a, Partials p) {
  __shared__ ChunkWeights<kShortThreads, kShort> chunks;
  wait_for_previous_kernel();
  let_next_kernel_start();
  const FoldPlace at(a, p);
  const auto dim = static_cast<int>(a.head_dim);
  const int d = static_cast<int>(threadIdx.x) % dim;
  float fetched[kShort];
#pragma unroll
  for (int c = 0; c < kShort; ++c)
    if (c < p.n_chunks) fetched[c] = __ldcs(p.o + (at.base + c) * dim + d);
  chunks.weigh(at.own, chunks.greatest_of(p.ml + at.base, at.own, at.n()));
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int c = 0; c < kShort; ++c)
    if (c < at.n()) sum += chunks.weight[c] * fetched[c];
  if (threadIdx.x < dim) at.store(a, d, sum, add_in_order<1>(0, chunks.l, at.n()));
}

// Many chunks: a block owns kFoldDims dimensions, all its threads fetch and weigh, a few add: the
// chain is short, its memory latency is not.
__global__ void __launch_bounds__(kLongThreads, 2) fold_long_kernel(Args a, Partials p) {
  constexpr int kSlots = kLongThreads / kFoldDims, kLoads = kStage / kSlots;
  __shared__ ChunkWeights<kLongThreads, kStage> chunks;
  __shared__ float o[kStage][kFoldDims], sum_l;
  wait_for_previous_kernel();
  let_next_kernel_start();
  const FoldPlace at(a, p);
  const int dim = static_cast<int>(threadIdx.x) % kFoldDims;
  const int slot = static_cast<int>(threadIdx.x) / kFoldDims;
  const int d = static_cast<int>(blockIdx.z) * kFoldDims + dim;
  float fetched[kLoads];
  const auto fetch = [&](int c0, int end) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      if (const int c = c0 + i * kSlots + slot; c < end)
        fetched[i] = __ldcg(p.o + (at.base + c) * a.head_dim + d);
  };
  fetch(0, p.n_chunks);
  const int n = at.n();
  const float greatest = chunks.greatest_of(p.ml + at.base, at.own, n);
  float sum = 0;
  for (int c0 = 0; c0 < n; c0 += kStage) {
    const int n_stage = min(kStage, n - c0);
    chunks.weigh(c0 == 0 ? at.own : at.ml_at(p, c0, n), greatest);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      o[i * kSlots + slot][dim] = chunks.weight[i * kSlots + slot] * fetched[i];
    __syncthreads();
    fetch(c0 + kStage, n);
    if (slot == 0) sum = add_in_order<kFoldDims>(sum, &o[0][dim], n_stage);
    if (threadIdx.x == kLongThreads - 1)
      sum_l = add_in_order<1>(c0 == 0 ? 0.0f : sum_l, chunks.l, n_stage);
    __syncthreads();
  }
  if (slot == 0) at.store(a, d, sum, sum_l);
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
  return {ml, reinterpret_cast<float*>(ml + a.n_rows * a.n_heads * n_chunks), n_chunks, 0};
}

// Three blocks of every two multiprocessors: of 132, 198 gave 68.8 us at one sequence of 64k, 132
// of them 69.4 and 264 69.6. More than half of a small grid would slow what still runs: 15.0 us
// against 14.3 at 8k.
int count_ahead(dim3 grid, unsigned* n_ahead) {
  DeviceSize device;
  if (cudaError_t e = ask_device(device); e != cudaSuccess) return e;
  *n_ahead = min(static_cast<unsigned>(device.n_sms) * 3 / 2, grid.x * grid.y * grid.z / 2);
  return cudaSuccess;
}

}  // namespace

bool takes_sm80(const Args& a) {
  return a.kv_type == DType::bf16 && (a.q_type == DType::bf16 || a.q_type == DType::f32) &&
         (a.head_dim == 64 || a.head_dim == 128) && a.window == 0 && a.n_rows <= 65535 &&
         a.n_kv_heads <= 65535;
}

size_t sm80_workspace_bytes(const Args& a, int) {
  return static_cast<size_t>(a.n_rows * a.n_heads * max_chunks(a)) *
         (2 + static_cast<size_t>(a.head_dim)) * 4;
}

int launch_sm80(const Args& a, void* stream, void* workspace) {
  if (a.n_rows == 0 || a.n_heads == 0) return cudaSuccess;
  Partials p = partials_in(a, workspace);
  const auto rows = static_cast<unsigned>(a.n_rows), heads = static_cast<unsigned>(a.n_heads);
  const dim3 chunks(static_cast<unsigned>(p.n_chunks), static_cast<unsigned>(a.n_kv_heads), rows);
  if (int e = count_ahead(chunks, &p.n_ahead); e != cudaSuccess) return e;
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
