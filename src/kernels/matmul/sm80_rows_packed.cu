// One to eight rows with weights of 8 to 4 bits, on any device since sm_80. Each warp of a block
// owns a k segment and streams it, tile after tile, through a ring of its own in shared memory: it
// makes operands of a segment while the next ones are on their way. So an output head, which is
// many tiles, needs as many blocks as fit a multiprocessor and reads x once. The segments' sums
// meet in shared memory, in two places in turn, and are folded in ascending order.
#include <cuda_runtime.h>

#include "kernels/device.cuh"
#include "kernels/matmul/args.h"
#include "kernels/matmul/device.h"
#include "kernels/rows_product.cuh"

namespace millrace::matmul {
namespace {

namespace rp = rows_product;

constexpr int kMaxWarps = 16;
constexpr int kBlocksPerSm = 2;  // of that many warps
constexpr int kStages = 4;       // of a warp's ring

struct Walk {
  rp::Shape shape;
  int n_tiles, n_warps;

  // Floats of one tile's sums of a segment: whole pairs of rows.
  __host__ __device__ __forceinline__ int sums_stride() const {
    return (shape.n_rows + 1) / 2 * 2 * rp::kSumStride;
  }
};

template <class W>
size_t bytes_of(const Walk& walk) {
  const auto ring = static_cast<size_t>(kStages * W::kSegmentBytes);
  const auto x = static_cast<size_t>(walk.shape.n_rows * rp::kXStride) * 2;
  const auto sums = static_cast<size_t>(2 * walk.shape.n_segments * walk.sums_stride()) * 4;
  return static_cast<size_t>(walk.n_warps) * (ring + x) + sums;
}

// Item i of a warp: its i-th segment, counted through all of its block's tiles.
template <class W>
__device__ __forceinline__ void fetch_item(unsigned char* ring, const void* w, const Walk& walk,
                                           int item) {
  const int warp = threadIdx.x >> 5;
  const int each = (walk.shape.n_segments - warp + walk.n_warps - 1) / walk.n_warps;
  const int segment = warp + item % each * walk.n_warps;
  const long long tile = blockIdx.x + static_cast<long long>(item / each) * gridDim.x;
  if (tile < walk.n_tiles)
    rp::fetch_segment<W>(ring + item % kStages * W::kSegmentBytes,
                         rp::tile_at<W>(w, walk.shape, tile), segment,
                         walk.shape.live_steps(segment));
  close_copies();
}

template <class W>
__device__ __forceinline__ void multiply_item(float (&c)[4], const unsigned char* weights,
                                              const unsigned short* x, int n_rows, int segment,
                                              int live) {
  const unsigned* pairs = rp::rows_at(x, n_rows);
#pragma unroll
  for (int j = 0; j < device_weights::kParts; ++j) {
    if (j * kBlockSteps >= live) break;
    typename W::Part part;
    W::template load<device_weights::FromShared>(part, weights, segment, j, live);
    uint4 steps[kBlockSteps];
    W::widen(steps, part);
#pragma unroll
    for (int s = 0; s < kBlockSteps; ++s) {
      const uint2 b = rp::load_rows(pairs, n_rows, j * kBlockSteps + s);
      mma_step(c, steps[s], b.x, b.y);
    }
  }
}

// Folds a tile's sums; another warp begins with every tile.
__device__ __forceinline__ void store_tile(const Args& a, const Walk& walk, const float* sums,
                                           int tile, int round) {
  const int warp = threadIdx.x >> 5, turn = (warp + round) % walk.n_warps;
  for (int i = turn * 32 + static_cast<int>(threadIdx.x & 31); i < walk.shape.n_rows * kTileM;
       i += walk.n_warps * 32) {
    const int o = i % kTileM, r = i / kTileM;
    const long long output = static_cast<long long>(tile) * kTileM + o;
    if (output >= a.n) continue;
    const float* at = sums + r * rp::kSumStride + o;
    float sum = at[0];
#pragma unroll 8
    for (int j = 1; j < walk.shape.n_segments; ++j) sum += at[j * walk.sums_stride()];
    store_element(a.y, a.y_type == DType::bf16, r * a.n + output, sum);
  }
}

template <class W>
__global__ void __launch_bounds__(32 * kMaxWarps, kBlocksPerSm)
    packed_rows_kernel(Args a, Walk walk) {
  extern __shared__ __align__(16) unsigned char shared[];
  let_next_kernel_start();
  const rp::Shape& shape = walk.shape;
  const int warp = threadIdx.x >> 5;
  unsigned char* ring = shared + warp * kStages * W::kSegmentBytes;
  auto* xs = reinterpret_cast<unsigned short*>(shared + walk.n_warps * kStages * W::kSegmentBytes);
  unsigned short* x = xs + warp * shape.n_rows * rp::kXStride;
  auto* sums = reinterpret_cast<float*>(xs + walk.n_warps * shape.n_rows * rp::kXStride);
  for (int item = 0; item < kStages - 1; ++item) fetch_item<W>(ring, a.w, walk, item);
  wait_for_previous_kernel();
  int item = 0, round = 0;
  for (int tile = blockIdx.x; tile < walk.n_tiles; tile += gridDim.x, ++round) {
    float* out = sums + round % 2 * shape.n_segments * walk.sums_stride();
    for (int segment = warp; segment < shape.n_segments; segment += walk.n_warps, ++item) {
      const int live = shape.live_steps(segment);
      if (round == 0 || shape.n_segments > walk.n_warps)
        rp::stage_plain(x, a.x, a.k, shape, segment, live);
      fetch_item<W>(ring, a.w, walk, item + kStages - 1);
      wait_copies<kStages - 1>();
      __syncwarp();
      float c[4] = {};
      multiply_item<W>(c, ring + item % kStages * W::kSegmentBytes, x, shape.n_rows, segment, live);
      rp::store_sums(out + segment * walk.sums_stride(), c, shape.n_rows);
      __syncwarp();
    }
    __syncthreads();
    store_tile(a, walk, out, tile, round);
  }
}

Walk walk_of(const Args& a) {
  const rp::Shape shape = rp::shape_of(a.n_rows, a.k);
  // Long k leaves its sums more room than rings.
  return {shape, static_cast<int>((a.n + kTileM - 1) / kTileM),
          shape.n_segments <= kMaxWarps ? shape.n_segments : kMaxWarps / 2};
}

template <class W>
int launch(const Args& a, const DeviceSize& device, void* stream) {
  const Walk walk = walk_of(a);
  const size_t bytes = bytes_of<W>(walk);
  // A small device: the other variant of the class needs less.
  if (bytes > static_cast<size_t>(device.shared_bytes))
    return launch_sm80_tiles(a, stream, nullptr);
  const auto fit = static_cast<int>(static_cast<size_t>(device.shared_bytes) / bytes);
  const int blocks_per_sm = max(1, min(fit, kBlocksPerSm * kMaxWarps / walk.n_warps));
  return rp::launch(
      packed_rows_kernel<W>,
      {.grid = dim3(static_cast<unsigned>(min(walk.n_tiles, device.n_sms * blocks_per_sm))),
       .n_threads = static_cast<unsigned>(32 * walk.n_warps),
       .shared_bytes = bytes},
      stream, a, walk);
}

}  // namespace

bool takes_sm80_rows_packed(const Args& a) {
  return takes_sm80_tiles(a) && device_weights::is_packed(a.w_type) && a.n_rows <= rp::kRows &&
         a.k <= 96 * kSegment;
}

int launch_sm80_rows_packed(const Args& a, void* stream, void*) {
  if (a.n_rows == 0 || a.n == 0) return cudaSuccess;
  DeviceSize device;
  if (cudaError_t e = ask_device(device); e != cudaSuccess) return e;
  return device_weights::with_format(a.w_type, [&](auto format) -> int {
    using W = decltype(format);
    if constexpr (W::kIsPacked)
      return launch<W>(a, device, stream);
    else
      return cudaErrorInvalidValue;  // takes_sm80_rows_packed() does not let it in
  });
}

}  // namespace millrace::matmul
