// Any number of rows, on any device since sm_80: blocks of 64 or 128 outputs x 64 or 128 rows,
// eight warps. Packed weights and rows of x come through shared memory in stages of 64 k, three of
// them in rotation; the stages of a segment share one chain of sums. Weights of 8 and 4 bits come
// as they are, a segment of 128 k at a time, and are made operands by the warps that multiply them.
#include <cuda_runtime.h>

#include <span>

#include "kernels/device.cuh"
#include "kernels/device_weights.cuh"
#include "kernels/matmul/args.h"
#include "kernels/matmul/device.h"
#include "kernels/matmul/tile.cuh"
#include "kernels/shared_tiles.cuh"

namespace millrace::matmul {
namespace {

constexpr int kWarpsM = 4, kWarpsN = 2;
constexpr int kThreads = 32 * kWarpsM * kWarpsN;
constexpr int kStages = 3;
constexpr int kStageSteps = 4;
constexpr int kStageK = kStageSteps * kStepK;  // 64: 128 bytes of a row
constexpr int kStagesPerSegment = kStepsPerSegment / kStageSteps;

// A block of outputs x rows, kTiles tiles of 16 outputs x kColumns columns of 8 rows a warp, and
// this thread's part of bringing in its stages. A tile's weights of a stage are neighbours in
// memory. Those of 8 and 4 bits lie behind the stages, of two segments in turn.
template <class W, int kTiles, int kColumns>
struct Block {
  static constexpr int kM = kWarpsM * kTiles * kTileM;  // outputs
  static constexpr int kN = kWarpsN * kColumns * 8;     // rows
  static constexpr int kTilesM = kM / kTileM;
  static constexpr int kTilePieces = kStageSteps * kStepBytes / 16;  // pieces of 16 bytes
  static constexpr int kRowPieces = kStageK * 2 / 16;
  static constexpr int kTilesAtOnce = kThreads / kTilePieces;
  static constexpr int kRowsAtOnce = kThreads / kRowPieces;
  static constexpr int kWeightBytes = W::kIsPacked ? 0 : kTilesM * kTilePieces * 16;
  static constexpr int kStageBytes = kWeightBytes + kN * kRowPieces * 16;
  static constexpr int kSegmentsBytes = kTilesM * W::kSegmentBytes;
  static constexpr int kSharedBytes =
      kStages * kStageBytes + (W::kIsPacked ? 2 * kSegmentsBytes : 0);

  unsigned char* shared;
  const unsigned char *w, *x;    // this thread's first piece of stage 0; packed: the first tile
  long long w_stride, x_stride;  // bytes to its next tile's, its next row's
  int live_tiles, live_rows;     // how many of them there are
  int step, n_steps, k_left;     // of stage 0: the piece's step, and the k from the piece on

  __device__ Block(const Args& a, unsigned char* memory, int n_tiles)
      : shared(memory), n_steps(static_cast<int>(a.k / kStepK)) {
    const int tile = blockIdx.x * kTilesM + threadIdx.x / kTilePieces;
    const long long row = row0() + threadIdx.x / kRowPieces;
    const int k = threadIdx.x % kRowPieces * 8;
    k_left = static_cast<int>(a.k) - k;
    x_stride = kRowsAtOnce * a.k * 2;
    live_rows = static_cast<int>(max(
        0LL, min((a.n_rows - row + kRowsAtOnce - 1) / kRowsAtOnce, static_cast<long long>(kN))));
    if constexpr (W::kIsPacked) {
      live_tiles = n_tiles - static_cast<int>(blockIdx.x) * kTilesM;
      w_stride = W::tile_bytes(n_steps);
      w = static_cast<const unsigned char*>(a.w) + blockIdx.x * kTilesM * w_stride;
    } else {
      step = threadIdx.x % kTilePieces / 32;
      w_stride = static_cast<long long>(kTilesAtOnce) * n_steps * kStepBytes;
      live_tiles = max(0, (n_tiles - tile + kTilesAtOnce - 1) / kTilesAtOnce);
      w = static_cast<const unsigned char*>(a.w) +
          static_cast<long long>(live_tiles > 0 ? tile : 0) * n_steps * kStepBytes +
          threadIdx.x % kTilePieces * 16;
    }
    x = static_cast<const unsigned char*>(a.x) + ((live_rows > 0 ? row * a.k : 0) + k) * 2;
  }

  static __device__ long long row0() { return static_cast<long long>(blockIdx.y) * kN; }
  static __device__ long long output0() { return static_cast<long long>(blockIdx.x) * kM; }
  __device__ unsigned char* weights(int stage) const {
    return shared + stage % kStages * kStageBytes;
  }
  __device__ unsigned char* rows(int stage) const { return weights(stage) + kWeightBytes; }
  __device__ unsigned char* segment(int stage) const {
    return shared + kStages * kStageBytes + stage / kStagesPerSegment % 2 * kSegmentsBytes;
  }
  __device__ __forceinline__ int live_steps(int stage) const {  // of its segment
    return min(kStepsPerSegment, n_steps - stage / kStagesPerSegment * kStepsPerSegment);
  }

  // With the first stage of a segment, all of it.
  __device__ __forceinline__ void fetch_segment(int stage) const {
    if (stage % kStagesPerSegment != 0) return;
    constexpr int kPieces = W::kSegmentBytes / 16, kAll = kTilesM * kPieces;
    const int bytes = W::segment_bytes(max(0, live_steps(stage)));
    const unsigned char* from = w + W::segment_at(stage / kStagesPerSegment);
#pragma unroll
    for (int j = 0; j < (kAll + kThreads - 1) / kThreads; ++j) {
      const int i = j * kThreads + static_cast<int>(threadIdx.x), tile = i / kPieces;
      const int at = i % kPieces * 16;
      if (i < kAll)
        copy_async(segment(stage) + i * 16, from + tile * w_stride + at,
                   tile < live_tiles && at < bytes);
    }
  }

  __device__ __forceinline__ void fetch_weights(int stage) const {
    if constexpr (W::kIsPacked) return fetch_segment(stage);
    const bool is_step = stage * kStageSteps + step < n_steps;
    const unsigned char* from = w + stage * (kTilePieces * 16);
    unsigned char* to = weights(stage) + threadIdx.x * 16;
#pragma unroll
    for (int j = 0; j < kTilesM / kTilesAtOnce; ++j)
      copy_async(to + j * kThreads * 16, from + j * w_stride, is_step && j < live_tiles);
  }
  // A row's pieces lie in an order of its own, so that eight rows fall into different banks.
  __device__ __forceinline__ void fetch_rows(int stage) const {
    const int r = threadIdx.x / kRowPieces, piece = threadIdx.x % kRowPieces;
    const bool is_k = stage * kStageK < k_left;
    const unsigned char* from = x + stage * (kStageK * 2);
    unsigned char* to = rows(stage) + r * (kRowPieces * 16) + (piece ^ (r & 7)) * 16;
#pragma unroll
    for (int j = 0; j < kN / kRowsAtOnce; ++j)
      copy_async(to + j * kThreads * 16, from + j * x_stride, is_k && j < live_rows);
  }
};

template <int kTiles, int kColumns>
struct Sums {
  float at[kTiles][kColumns][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i) at[m][c][i] = 0;
  }
  __device__ __forceinline__ void add(const Sums& segment, bool is_first) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          at[m][c][i] = is_first ? segment.at[m][c][i] : at[m][c][i] + segment.at[m][c][i];
  }
};

template <int kTiles, int kColumns>
__device__ __forceinline__ void multiply_step(Sums<kTiles, kColumns>& sums,
                                              const uint4 (&fragment)[kTiles],
                                              const unsigned char* rows, int step) {
  const int lane = threadIdx.x & 31, r = (lane & 7) + (lane >> 4) * 8;
  const int piece = step * 2 + ((lane >> 3) & 1);
#pragma unroll
  for (int c = 0; c < kColumns; c += 2) {
    unsigned b[4];
    load_matrices(b, rows + (c * 8 + r) * 128 + (piece ^ (r & 7)) * 16);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      mma_step(sums.at[m][c], fragment[m], b[0], b[1]);
      mma_step(sums.at[m][c + 1], fragment[m], b[2], b[3]);
    }
  }
}

template <int kTiles, int kColumns>
__device__ __forceinline__ void multiply_step(Sums<kTiles, kColumns>& sums,
                                              const unsigned char* weights,
                                              const unsigned char* rows, int step) {
  uint4 fragment[kTiles];
#pragma unroll
  for (int m = 0; m < kTiles; ++m)
    fragment[m] = *reinterpret_cast<const uint4*>(weights + (m * kStageSteps + step) * kStepBytes +
                                                  (threadIdx.x & 31) * 16);
  multiply_step(sums, fragment, rows, step);
}

// A stage of weights of 8 or 4 bits: its half of the segment that begins at `weights`.
template <class W, int kTiles, int kColumns>
__device__ __forceinline__ void multiply_packed(Sums<kTiles, kColumns>& sums,
                                                const unsigned char* weights,
                                                const unsigned char* rows, int stage, int live) {
  constexpr int kStageParts = kStageSteps / kBlockSteps;
#pragma unroll 1  // or the registers do not do
  for (int p = 0; p < kStageParts; ++p) {
    const int part_of_segment = stage % kStagesPerSegment * kStageParts + p;
    if (part_of_segment * kBlockSteps >= live) break;
    uint4 fragment[kBlockSteps][kTiles];
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      typename W::Part part;
      W::template load<device_weights::FromShared>(
          part, weights + m * W::kSegmentBytes, stage / kStagesPerSegment, part_of_segment, live);
      uint4 steps[kBlockSteps];
      W::widen(steps, part);
#pragma unroll
      for (int s = 0; s < kBlockSteps; ++s) fragment[s][m] = steps[s];
    }
#pragma unroll
    for (int s = 0; s < kBlockSteps; ++s)
      multiply_step(sums, fragment[s], rows, p * kBlockSteps + s);
  }
}

// All steps of a stage.
template <class W, int kTiles, int kColumns>
__device__ __forceinline__ void multiply_stage(Sums<kTiles, kColumns>& sums,
                                               const Block<W, kTiles, kColumns>& block, int stage,
                                               int warp_m, int warp_n) {
  const unsigned char* rows = block.rows(stage) + warp_n * kColumns * 8 * 128;
  if constexpr (W::kIsPacked) {
    multiply_packed<W>(sums, block.segment(stage) + warp_m * kTiles * W::kSegmentBytes, rows, stage,
                       block.live_steps(stage));
    return;
  }
  const unsigned char* weights = block.weights(stage) + warp_m * kTiles * kStageSteps * kStepBytes;
  if ((stage + 1) * kStageSteps <= block.n_steps) {
#pragma unroll
    for (int step = 0; step < kStageSteps; ++step) multiply_step(sums, weights, rows, step);
  } else {
    for (int step = 0; stage * kStageSteps + step < block.n_steps; ++step)
      multiply_step(sums, weights, rows, step);
  }
}

// Writes a tile [rows][outputs] from shared memory, 16 bytes at a time where rows of y allow it.
template <class Element, int kM, int kN>
__device__ __forceinline__ void write_out(const Args& a, const Element* tile, int stride,
                                          long long row0, long long output0) {
  constexpr int kEach = 16 / sizeof(Element);
  const bool whole = a.n % kEach == 0 && output0 + kM <= a.n &&
                     reinterpret_cast<unsigned long long>(a.y) % 16 == 0;
  auto* y = static_cast<Element*>(a.y);
  for (int i = threadIdx.x; i < kN * (kM / kEach); i += kThreads) {
    const int r = i / (kM / kEach), o = i % (kM / kEach) * kEach;
    if (row0 + r >= a.n_rows) continue;
    const Element* from = tile + r * stride + o;
    Element* to = y + (row0 + r) * a.n + output0 + o;
    if (whole) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
      continue;
    }
    for (int j = 0; j < kEach && output0 + o + j < a.n; ++j) to[j] = from[j];
  }
}

// The sums through shared memory, where lanes hold columns, to y, where rows lie side by side.
template <class B, int kTiles, int kColumns>
__device__ __forceinline__ void store(const Args& a, unsigned char* shared,
                                      const Sums<kTiles, kColumns>& sums, int warp_m, int warp_n) {
  constexpr int kFloatStride = B::kM + 4, kShortStride = B::kM + 8;  // 16 bytes against conflicts
  static_assert(B::kN * kFloatStride * 4 <= B::kSharedBytes);
  const int lane = threadIdx.x & 31;
  const bool is_bf16 = a.y_type == DType::bf16;
  const int stride = is_bf16 ? kShortStride : kFloatStride;
#pragma unroll
  for (int m = 0; m < kTiles; ++m)
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = (warp_n * kColumns + c) * 8 + 2 * (lane & 3) + (i & 1);
        const int o = (warp_m * kTiles + m) * kTileM + (lane >> 2) + (i >> 1) * 8;
        store_element(shared, is_bf16, r * stride + o, sums.at[m][c][i]);
      }
  __syncthreads();
  if (is_bf16)
    write_out<unsigned short, B::kM, B::kN>(a, reinterpret_cast<const unsigned short*>(shared),
                                            stride, B::row0(), B::output0());
  else
    write_out<float, B::kM, B::kN>(a, reinterpret_cast<const float*>(shared), stride, B::row0(),
                                   B::output0());
}

// Blocks that share a multiprocessor: as many as their sums leave registers for.
constexpr int blocks_of(int tiles, int columns, bool packed) {
  return tiles * columns == 16 ? 1 : tiles * columns == 8 || packed ? 2 : 3;
}

template <class W, int kTiles, int kColumns>
__global__ void __launch_bounds__(kThreads, blocks_of(kTiles, kColumns, W::kIsPacked))
    tiles_kernel(Args a, int n_tiles) {
  extern __shared__ __align__(16) unsigned char shared[];
  let_next_kernel_start();
  const int warp = threadIdx.x >> 5, warp_m = warp % kWarpsM, warp_n = warp / kWarpsM;
  using B = Block<W, kTiles, kColumns>;
  const B block(a, shared, n_tiles);
  const int n_steps = block.n_steps, n_stages = (n_steps + kStageSteps - 1) / kStageSteps;
  for (int stage = 0; stage < kStages - 1; ++stage) block.fetch_weights(stage);
  wait_for_previous_kernel();
  for (int stage = 0; stage < kStages - 1; ++stage) {
    block.fetch_rows(stage);
    close_copies();
  }

  Sums<kTiles, kColumns> total, segment;
  segment.clear();
  for (int stage = 0; stage < n_stages; ++stage) {
    wait_copies<kStages - 2>();
    __syncthreads();
    if (const int next = stage + kStages - 1; next < n_stages) {
      block.fetch_weights(next);
      block.fetch_rows(next);
    }
    close_copies();
    multiply_stage(segment, block, stage, warp_m, warp_n);
    if ((stage + 1) % kStagesPerSegment != 0 && stage + 1 < n_stages) continue;
    total.add(segment, stage < kStagesPerSegment);
    segment.clear();
  }
  wait_copies<0>();
  __syncthreads();  // the stages' memory is free
  store<B>(a, shared, total, warp_m, warp_n);
}

using Kernel = void (*)(Args, int);

struct Tiling {
  Kernel kernel;
  int outputs, rows, shared_bytes;
  float cost;  // of a block, about: larger ones read less a product
};

template <class W, int kTiles, int kColumns>
constexpr Tiling tiling_of(float cost) {
  using B = Block<W, kTiles, kColumns>;
  return {tiles_kernel<W, kTiles, kColumns>, B::kM, B::kN, B::kSharedBytes, cost};
}

dim3 grid_of(const Args& a, const Tiling& c) {
  return dim3(static_cast<unsigned>((a.n + c.outputs - 1) / c.outputs),
              static_cast<unsigned>((a.n_rows + c.rows - 1) / c.rows));
}

template <class W>
struct Tilings {
  static constexpr Tiling kAll[2] = {tiling_of<W, 2, 8>(1.0f), tiling_of<W, 1, 4>(0.36f)};
};
template <>
struct Tilings<device_weights::Bf16> {
  using W = device_weights::Bf16;
  static constexpr Tiling kAll[] = {tiling_of<W, 2, 8>(1.0f), tiling_of<W, 2, 4>(0.58f),
                                    tiling_of<W, 1, 4>(0.36f)};
};

// The blocks that end first when every multiprocessor takes one after the other. The costs were
// measured with bf16 weights.
const Tiling& choose_among(std::span<const Tiling> tilings, const Args& a, int n_sms) {
  const Tiling* best = nullptr;
  float best_cost = 0;
  for (const Tiling& c : tilings) {
    const dim3 grid = grid_of(a, c);
    const auto waves =
        static_cast<float>((static_cast<long long>(grid.x) * grid.y + n_sms - 1) / n_sms);
    if (best != nullptr && waves * c.cost >= best_cost) continue;
    best = &c;
    best_cost = waves * c.cost;
  }
  return *best;
}

const Tiling& choose(const Args& a, int n_sms) {
  return *device_weights::with_format(a.w_type, [&](auto format) {
    return &choose_among(Tilings<decltype(format)>::kAll, a, n_sms);
  });
}

}  // namespace

bool takes_sm80_tiles(const Args& a) {
  return device_weights::takes(a.w_type, a.k) && a.x_type == DType::bf16 &&
         (a.y_type == DType::f32 || a.y_type == DType::bf16) && a.n_rows <= 65535 * 64;
}

TileShape tiles_sm80_tiles(const Args& a, int n_sms) {
  const Tiling& tiling = choose(a, n_sms);
  const dim3 grid = grid_of(a, tiling);
  return {tiling.rows, static_cast<long long>(grid.x) * grid.y, 1};
}

int launch_sm80_tiles(const Args& a, void* stream, void*) {
  if (a.n_rows == 0 || a.n == 0) return cudaSuccess;
  DeviceSize device;
  if (cudaError_t e = ask_device(device); e != cudaSuccess) return e;
  const Tiling& tiling = choose(a, device.n_sms);
  if (cudaError_t e = cudaFuncSetAttribute(
          tiling.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, tiling.shared_bytes);
      e != cudaSuccess)
    return e;
  return overlapped_launch(tiling.kernel,
                           {grid_of(a, tiling), kThreads, static_cast<size_t>(tiling.shared_bytes)},
                           stream, a, static_cast<int>((a.n + kTileM - 1) / kTileM));
}

}  // namespace millrace::matmul
