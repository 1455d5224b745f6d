// A product with one to eight rows of x, as fused kernels do it, without a launch: the pieces of
// class cuda.matmul.bf16 (matmul/tile.cuh) between a kernel's own way of making x and its own way
// with the results. A block owns kTiles tiles of 16 outputs, each of its warps one k segment of
// them: all its weights are on their way to shared memory before the previous kernel's results are
// awaited (registers would need L1 for what is in flight, and more of it than attention leaves).
// Weights of 8 and 4 bits are also made operands before that, in registers: it takes as long as a
// small product, and the wait hides it. The segments' sums meet in shared memory and are folded in
// ascending order. W: the weights' format (device_weights.cuh).
#pragma once

#include "kernels/device.cuh"
#include "kernels/device_weights.cuh"
#include "kernels/matmul/tile.cuh"
#include "kernels/rmsnorm/tile.cuh"
#include "kernels/shared_tiles.cuh"

namespace millrace::rows_product {

inline constexpr int kRows = 8;                        // the N operand of one tensor-core step
inline constexpr int kXStride = matmul::kSegment + 8;  // bf16; eight rows in different banks
// A segment's sums lie as [tile][row][output]; a row's stride puts what a warp writes at once into
// different banks, a tile's what it reads at once.
inline constexpr int kSumStride = matmul::kTileM + 4;
inline constexpr int kTileSums = kRows * kSumStride + matmul::kTileM;

// Warps of a block: one a segment where registers allow.
__host__ __device__ constexpr int max_warps(int n_tiles) {
  return n_tiles == 1 ? 24 : 16;
}

struct Shape {
  int n_rows, n_steps, n_segments;

  __device__ __forceinline__ int live_steps(int segment) const {
    return min(matmul::kStepsPerSegment, n_steps - segment * matmul::kStepsPerSegment);
  }
};

inline Shape shape_of(long long n_rows, long long k) {
  const auto n_steps = static_cast<int>(k / matmul::kStepK);
  const int n_segments = (n_steps + matmul::kStepsPerSegment - 1) / matmul::kStepsPerSegment;
  return {static_cast<int>(n_rows), n_steps, n_segments};
}

// Warps that multiply; a block may have more.
__host__ __device__ inline int warps_of(const Shape& s, int n_tiles) {
  return s.n_segments < max_warps(n_tiles) ? s.n_segments : max_warps(n_tiles);
}

// What a block keeps in shared memory, in this order: every warp's weights, its segment of x, and
// the segments' sums; where a warp has one segment alone, its sums take the place of its weights.
template <class W, int kTiles>
struct Memory {
  static_assert(kTileSums * sizeof(float) <= W::kSegmentBytes);
  unsigned char* weights;  // of this warp
  unsigned short* x;       // of this warp
  float* sums;
  int sums_stride;  // from segment to segment

  __device__ __forceinline__ Memory(unsigned char* shared, const Shape& s) {
    const int warp = threadIdx.x >> 5, n_warps = warps_of(s, kTiles);
    weights = shared + warp * kTiles * W::kSegmentBytes;
    auto* xs = reinterpret_cast<unsigned short*>(shared + n_warps * kTiles * W::kSegmentBytes);
    x = xs + warp * s.n_rows * kXStride;
    const bool one_each = s.n_segments <= n_warps;
    sums = one_each ? reinterpret_cast<float*>(shared)
                    : reinterpret_cast<float*>(xs + n_warps * s.n_rows * kXStride);
    sums_stride = one_each ? kTiles * W::kSegmentBytes / 4 : kTiles * kTileSums;
  }
  __host__ __device__ static size_t bytes(const Shape& s) {
    const int n_warps = warps_of(s, kTiles);
    const auto sums = static_cast<size_t>(s.n_segments <= n_warps ? 0 : s.n_segments);
    return static_cast<size_t>(n_warps) *
               static_cast<size_t>(kTiles * W::kSegmentBytes + s.n_rows * kXStride * 2) +
           sums * kTiles * kTileSums * sizeof(float);
  }
  // Output o of a tile for a row: the segments in ascending order.
  __device__ __forceinline__ float folded(const Shape& s, int tile, int row, int o) const {
    const float* at = sums + tile * kTileSums + row * kSumStride + o;
    float sum = at[0];
#pragma unroll 8
    for (int j = 1; j < s.n_segments; ++j) sum += at[j * sums_stride];
    return sum;
  }
};

// Where a packed tile begins.
template <class W>
__device__ __forceinline__ const unsigned char* tile_at(const void* w, const Shape& s,
                                                        long long tile) {
  return static_cast<const unsigned char*>(w) + tile * W::tile_bytes(s.n_steps);
}

// Requests a segment of a tile, all lanes of a warp together.
template <class W>
__device__ __forceinline__ void fetch_segment(unsigned char* to, const unsigned char* tile,
                                              int segment, int live) {
  const unsigned char* from = tile + W::segment_at(segment);
  const int lane = threadIdx.x & 31, bytes = W::segment_bytes(live);
#pragma unroll
  for (int i = 0; i < (W::kSegmentBytes + 511) / 512; ++i)
    if (const int at = (i * 32 + lane) * 16; at < bytes) copy_async(to + at, from + at);
}

using Fragments = uint4[matmul::kStepsPerSegment];

// A segment that has arrived, as tensor-core operands.
template <class W>
__device__ __forceinline__ void widen_segment(Fragments& out, const unsigned char* weights,
                                              int segment, int live) {
#pragma unroll
  for (int j = 0; j < device_weights::kParts; ++j) {
    typename W::Part part;
    W::template load<device_weights::FromShared>(part, weights, segment, j, live);
    uint4 steps[device_weights::kBlockSteps];
    W::widen(steps, part);
#pragma unroll
    for (int s = 0; s < device_weights::kBlockSteps; ++s)
      out[j * device_weights::kBlockSteps + s] = steps[s];
  }
}

// Where this lane reads its part of a segment of x, the other operand: lane (g, t) holds k = 2t,
// 2t+1, 2t+8, 2t+9 of row g.
__device__ __forceinline__ const unsigned* rows_at(const unsigned short* x, int n_rows) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  return reinterpret_cast<const unsigned*>(x + (g < n_rows ? g * kXStride : 0)) + t;
}
// A step of it; rows that are not there count as zeros.
__device__ __forceinline__ uint2 load_rows(const unsigned* pairs, int n_rows, int step) {
  const bool is_row = static_cast<int>(threadIdx.x & 31) >> 2 < n_rows;
  return is_row ? make_uint2(pairs[step * 8], pairs[step * 8 + 4]) : make_uint2(0, 0);
}

// c: the sums of one segment; weights: as they arrived in shared memory. Where `live` is a
// constant, all operands are on their way before the first step.
template <class W, int kTiles>
__device__ __forceinline__ void multiply(float (&c)[kTiles][4], const unsigned char* weights,
                                         const unsigned short* x, int n_rows, int live) {
  const unsigned* pairs = rows_at(x, n_rows);
  uint2 b[matmul::kStepsPerSegment];
#pragma unroll
  for (int s = 0; s < matmul::kStepsPerSegment; ++s)
    if (s < live) b[s] = load_rows(pairs, n_rows, s);
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
    Fragments fragment;
    widen_segment<W>(fragment, weights + m * W::kSegmentBytes, 0, live);
#pragma unroll
    for (int s = 0; s < matmul::kStepsPerSegment; ++s)
      if (s < live) matmul::mma_step(c[m], fragment[s], b[s].x, b[s].y);
  }
}

// The same with weights that are operands already.
template <int kTiles>
__device__ __forceinline__ void multiply(float (&c)[kTiles][4], const Fragments (&weights)[kTiles],
                                         const unsigned short* x, int n_rows, int live) {
  const unsigned* pairs = rows_at(x, n_rows);
#pragma unroll
  for (int s = 0; s < matmul::kStepsPerSegment; ++s) {
    if (s >= live) break;
    const uint2 b = load_rows(pairs, n_rows, s);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) matmul::mma_step(c[m], weights[m][s], b.x, b.y);
  }
}

// The sums of one segment and tile, as [row][output].
__device__ __forceinline__ void store_sums(float* sums, const float (&c)[4], int n_rows) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  if (2 * t >= n_rows) return;
  float* out = sums + 2 * t * kSumStride + g;
  out[0] = c[0];
  out[kSumStride] = c[1];
  out[8] = c[2];
  out[kSumStride + 8] = c[3];
}

// All segments of the block's tiles, which begin at w. `begin` runs once in every warp, after the
// first weights are requested: it awaits the previous kernel and may synchronise the block. `stage`
// puts a segment's x into the warp's memory. No barrier follows.
template <class W, int kTiles, class Begin, class Stage>
__device__ __forceinline__ void run(const unsigned char* const (&w)[kTiles], const Shape& shape,
                                    const Memory<W, kTiles>& memory, Begin begin, Stage stage) {
  const int warp = threadIdx.x >> 5;
  for (int segment = warp; segment < shape.n_segments; segment += warps_of(shape, kTiles)) {
    const int live = shape.live_steps(segment);
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
      fetch_segment<W>(memory.weights + m * W::kSegmentBytes, w[m], segment, live);
    close_copies();
    [[maybe_unused]] Fragments early[kTiles];
    if constexpr (W::kIsPacked) {
      wait_copies<0>();
      __syncwarp();
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
        widen_segment<W>(early[m], memory.weights + m * W::kSegmentBytes, segment, live);
    }
    if (segment == warp) begin();
    stage(segment, live);
    wait_copies<0>();
    __syncwarp();
    float c[kTiles][4] = {};
    if constexpr (W::kIsPacked)
      multiply<kTiles>(c, early, memory.x, shape.n_rows, live);
    else if (live == matmul::kStepsPerSegment)
      multiply<W, kTiles>(c, memory.weights, memory.x, shape.n_rows, matmul::kStepsPerSegment);
    else
      multiply<W, kTiles>(c, memory.weights, memory.x, shape.n_rows, live);
    __syncwarp();
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
      store_sums(memory.sums + segment * memory.sums_stride + m * kTileSums, c[m], shape.n_rows);
    __syncwarp();
  }
}

// x of a segment as it lies in memory, bf16 [n_rows][k], as whole lines: every block reads all of
// x, and as scattered words those requests would queue up at a handful of L2 slices.
__device__ __forceinline__ void stage_plain(unsigned short* to, const void* x, long long k,
                                            const Shape& shape, int segment, int live) {
  const auto* from = static_cast<const unsigned short*>(x) + segment * matmul::kSegment;
  for (int i = threadIdx.x & 31; i < shape.n_rows * (matmul::kSegment / 8); i += 32) {
    const int r = i / (matmul::kSegment / 8), c = i % (matmul::kSegment / 8) * 8;
    if (c < live * matmul::kStepK)
      *reinterpret_cast<uint4*>(to + r * kXStride + c) =
          __ldcg(reinterpret_cast<const uint4*>(from + r * k + c));
  }
}

template <int kTiles>
size_t shared_bytes(DType type, const Shape& shape) {
  return device_weights::with_format(
      type, [&](auto format) { return Memory<decltype(format), kTiles>::bytes(shape); });
}

// Whether this device gives a block so much shared memory, with room for its own small things.
inline bool fits(size_t bytes) {
  DeviceSize device;
  return ask_device(device) == cudaSuccess &&
         bytes + 4096 <= static_cast<size_t>(device.shared_bytes);
}

template <class... Params, class... Values>
int launch(void (*kernel)(Params...), LaunchShape shape, void* stream, Values... values) {
  if (cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(shape.shared_bytes));
      e != cudaSuccess)
    return e;
  shape.all_shared = true;
  return overlapped_launch(kernel, shape, stream, values...);
}

// What a cluster's blocks say to each other. Each is a piece of a cluster only in code for sm_90;
// elsewhere a launch has no clusters, and these mean the block itself.
__device__ __forceinline__ void arrive_at_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#else
  __syncthreads();
#endif
}
// The same place in the shared memory of another block of the cluster.
template <class T>
__device__ __forceinline__ T* at_block(T* shared, [[maybe_unused]] int rank) {
#if __CUDA_ARCH__ >= 900
  T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(rank));
  return there;
#else
  return shared;
#endif
}

// x as the norm of f32 rows, which every block makes for itself in class cuda.rmsnorm.lanes256.
struct Norm {
  const float* x;       // [n_rows][k], 16-byte aligned
  const float* weight;  // [k], 16-byte aligned
  long long k;          // a multiple of 16
  float eps;
};

inline size_t norm_bytes(const Shape& s) {
  return static_cast<size_t>(s.n_rows) *
         (static_cast<size_t>(s.n_steps) * matmul::kStepK + rmsnorm::kParts) * sizeof(float);
}

// Brings in the rows and adds up their squares by part; rows is of norm_bytes().
__device__ __forceinline__ void begin_norm(float* rows, const Norm& a, const Shape& shape) {
  const auto k = static_cast<int>(a.k);
  for (int i = threadIdx.x; i < shape.n_rows * k / 4; i += blockDim.x)
    reinterpret_cast<float4*>(rows)[i] = __ldcg(reinterpret_cast<const float4*>(a.x) + i);
  __syncthreads();
  float* parts = rows + shape.n_rows * k;
  const int lane = threadIdx.x & 31;
  for (int unit = threadIdx.x >> 5; unit < shape.n_rows * rmsnorm::kParts;
       unit += blockDim.x >> 5) {
    const float* row = rows + unit / rmsnorm::kParts * k;
    float sum = 0;
#pragma unroll 4
    for (int i = unit % rmsnorm::kParts * 32 + lane; i < k; i += rmsnorm::kLanes)
      sum = __fmaf_rn(row[i], row[i], sum);
    sum = rmsnorm::fold_part(sum);
    if (lane == 0) parts[unit] = sum;
  }
  __syncthreads();
}

__device__ __forceinline__ unsigned bf16_pair(float low, float high) {
  return bf16_bits(low) | static_cast<unsigned>(bf16_bits(high)) << 16;
}

// The norm's weights of this lane's elements of a segment: they never change, so they too can be
// requested before the previous kernel ends.
__device__ __forceinline__ float4 norm_weights(const Norm& a, int segment) {
  const int at = segment * matmul::kSegment + 4 * static_cast<int>(threadIdx.x & 31);
  if (at >= a.k) return make_float4(0, 0, 0, 0);
  return __ldg(reinterpret_cast<const float4*>(a.weight + at));
}

// A segment of the rows, normed and rounded; four elements a lane.
__device__ __forceinline__ void stage_norm(unsigned short* to, const float* rows, const Norm& a,
                                           const float4& w, const Shape& shape, int segment,
                                           int live) {
  const int at = 4 * static_cast<int>(threadIdx.x & 31);
  if (at >= live * matmul::kStepK) return;
  const auto k = static_cast<int>(a.k);
  for (int r = 0; r < shape.n_rows; ++r) {
    const float* parts = rows + shape.n_rows * k + r * rmsnorm::kParts;
    float sum = parts[0];
#pragma unroll
    for (int p = 1; p < rmsnorm::kParts; ++p) sum += parts[p];
    const float scale = rmsnorm::scale_of(sum, a.k, a.eps);
    const float4 x =
        *reinterpret_cast<const float4*>(rows + r * k + segment * matmul::kSegment + at);
    *reinterpret_cast<uint2*>(to + r * kXStride + at) =
        make_uint2(bf16_pair(x.x * scale * w.x, x.y * scale * w.y),
                   bf16_pair(x.z * scale * w.z, x.w * scale * w.w));
  }
}

}  // namespace millrace::rows_product
