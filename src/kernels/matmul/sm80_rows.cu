// One to eight rows on any device since sm_80. A block owns one tile of 16 outputs, each of its
// warps one k segment of it: 4 KB of weights, loaded as tensor-core operands with eight 16-byte
// loads a lane, all in flight at once. The segments' sums meet in shared memory and are folded in
// ascending order. On Hopper the weights are requested before the previous kernel's results are
// awaited (they never change), so in a chain of products the memory bus does not see the kernel
// boundaries.
#include <cuda_runtime.h>

#include "kernels/device.cuh"
#include "kernels/matmul/args.h"
#include "kernels/matmul/device.h"
#include "kernels/matmul/tile.cuh"

namespace millrace::matmul {
namespace {

constexpr int kRows = 8;      // the N operand of one tensor-core step
constexpr int kMaxTiles = 3;  // 96 registers of weights in flight; two blocks still share an SM
constexpr int kTileSums = kTileM * kRows;
constexpr int kXStride = kSegment + 8;  // bf16; padded so that eight rows fall into different banks

// Warps of a block: one per segment where registers allow, so that all of a tile's k is in flight.
constexpr int max_warps(int n_tiles) {
  return n_tiles == 1 ? 24 : 16;
}

// Copies this warp's segment of x into its shared memory, row after row. Whole 128-byte lines:
// every block reads all of x, and as scattered words those requests would queue up at a handful of
// L2 slices.
__device__ __forceinline__ void stage_x(unsigned short* to, const Args& a, int first_step,
                                        int live) {
  const int lane = threadIdx.x & 31;
  const auto* from =
      static_cast<const unsigned short*>(a.x) + static_cast<long long>(first_step) * kStepK;
  for (int i = lane; i < static_cast<int>(a.n_rows) * (kSegment / 8); i += 32) {
    const int r = i / (kSegment / 8), c = i % (kSegment / 8) * 8;
    if (c < live * kStepK)
      *reinterpret_cast<uint4*>(to + r * kXStride + c) =
          __ldcg(reinterpret_cast<const uint4*>(from + r * a.k + c));
  }
  __syncwarp();
}

template <int kTiles>
__global__ void __launch_bounds__(32 * max_warps(kTiles), 1)
    rows_kernel(Args a, int n_steps, int n_segments) {
  extern __shared__ __align__(16) unsigned char shared[];
  let_next_kernel_start();
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, n_warps = blockDim.x >> 5;
  const int g = lane >> 2, t = lane & 3;
  const auto n_rows = static_cast<int>(a.n_rows);
  const int n_tiles = static_cast<int>((a.n + kTileM - 1) / kTileM), tile0 = blockIdx.x * kTiles;
  const auto* w = static_cast<const uint4*>(a.w) + lane;
  auto* partial = reinterpret_cast<float*>(shared);  // [tile][segment][output][row]
  auto* x = reinterpret_cast<unsigned short*>(partial + kTiles * n_segments * kTileSums) +
            warp * n_rows * kXStride;

  for (int segment = warp; segment < n_segments; segment += n_warps) {
    const int first = segment * kStepsPerSegment, live = min(kStepsPerSegment, n_steps - first);
    uint4 fragment[kTiles][kStepsPerSegment];
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      // A tile past the end repeats the last one and is not stored.
      const long long at = static_cast<long long>(min(tile0 + m, n_tiles - 1)) * n_steps + first;
#pragma unroll
      for (int s = 0; s < kStepsPerSegment; ++s)
        if (s < live) fragment[m][s] = __ldcs(w + (at + s) * 32);
    }
    if (segment == warp) wait_for_previous_kernel();
    stage_x(x, a, first, live);
    float c[kTiles][4] = {};
#pragma unroll
    for (int s = 0; s < kStepsPerSegment; ++s) {
      if (s >= live) break;
      // Lane (g, t) holds k = 2t, 2t+1, 2t+8, 2t+9 of row g.
      const auto* pairs = reinterpret_cast<const unsigned*>(x + g * kXStride + s * kStepK);
      const unsigned b0 = g < n_rows ? pairs[t] : 0, b1 = g < n_rows ? pairs[t + 4] : 0;
#pragma unroll
      for (int m = 0; m < kTiles; ++m) mma_step(c[m], fragment[m][s], b0, b1);
    }
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      float* out = partial + (m * n_segments + segment) * kTileSums;
      *reinterpret_cast<float2*>(out + g * kRows + 2 * t) = make_float2(c[m][0], c[m][1]);
      *reinterpret_cast<float2*>(out + (g + 8) * kRows + 2 * t) = make_float2(c[m][2], c[m][3]);
    }
    __syncwarp();
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kTiles * kTileM * n_rows; i += blockDim.x) {
    const int o = i % (kTiles * kTileM), r = i / (kTiles * kTileM);
    const long long output = static_cast<long long>(tile0) * kTileM + o;
    if (output >= a.n) continue;
    const float* sums = partial + o / kTileM * n_segments * kTileSums + o % kTileM * kRows + r;
    float sum = sums[0];
#pragma unroll 8
    for (int j = 1; j < n_segments; ++j) sum += sums[j * kTileSums];
    store_element(a.y, a.y_type == DType::bf16, r * a.n + output, sum);
  }
}

using Kernel = void (*)(Args, int, int);

size_t shared_bytes(const Args& a, int n_tiles, int n_segments) {
  const auto sums = static_cast<size_t>(n_tiles * n_segments) * kTileSums * sizeof(float);
  const int n_warps = min(max_warps(n_tiles), n_segments);
  return sums + static_cast<size_t>(n_warps * a.n_rows * kXStride) * 2;
}

}  // namespace

bool takes_sm80_rows(const Args& a) {
  return takes_sm80_tiles(a) && a.w_type == DType::bf16 && a.n_rows <= kRows &&
         a.k <= 96 * kSegment;
}

// About: where the shared memory of a small device is short, a block takes fewer tiles.
TileShape tiles_sm80_rows(const Args& a, int n_sms) {
  const long long n_tiles = (a.n + kTileM - 1) / kTileM;
  const long long per_block = min(static_cast<long long>(kMaxTiles), (n_tiles + n_sms - 1) / n_sms);
  return {kRows, (n_tiles + per_block - 1) / per_block, 2};
}

int launch_sm80_rows(const Args& a, void* stream, void*) {
  if (a.n_rows == 0 || a.n == 0) return cudaSuccess;
  DeviceSize device;
  if (cudaError_t e = ask_device(device); e != cudaSuccess) return e;
  const auto n_steps = static_cast<int>(a.k / kStepK);
  const int n_segments = (n_steps + kStepsPerSegment - 1) / kStepsPerSegment;
  const auto n_tiles = static_cast<int>((a.n + kTileM - 1) / kTileM);
  // As many tiles a block as give every SM one, fewer where the device's shared memory is small.
  int per_block = min(kMaxTiles, (n_tiles + device.n_sms - 1) / device.n_sms);
  while (per_block > 1 &&
         shared_bytes(a, per_block, n_segments) > static_cast<size_t>(device.shared_bytes))
    --per_block;
  constexpr Kernel kKernels[kMaxTiles] = {rows_kernel<1>, rows_kernel<2>, rows_kernel<3>};
  const LaunchShape shape = {
      .grid = dim3(static_cast<unsigned>((n_tiles + per_block - 1) / per_block)),
      .n_threads = static_cast<unsigned>(32 * min(max_warps(per_block), n_segments)),
      .shared_bytes = shared_bytes(a, per_block, n_segments)};
  if (shape.shared_bytes > 48 * 1024)
    if (cudaError_t e = cudaFuncSetAttribute(kKernels[per_block - 1],
                                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(shape.shared_bytes));
        e != cudaSuccess)
      return e;
  return overlapped_launch(kKernels[per_block - 1], shape, stream, a, n_steps, n_segments);
}

}  // namespace millrace::matmul
