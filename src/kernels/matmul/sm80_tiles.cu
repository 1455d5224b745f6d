// Any number of rows, on any device since sm_80: blocks of 64 or 128 outputs x 64 or 128 rows,
// eight warps. Packed weights and rows of x come through shared memory in stages of 64 k, three of
// them in rotation; the stages of a segment share one chain of sums.
#include <cuda_runtime.h>

#include "kernels/device.cuh"
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
// memory.
template <int kTiles, int kColumns>
struct Block {
  static constexpr int kM = kWarpsM * kTiles * kTileM;  // outputs
  static constexpr int kN = kWarpsN * kColumns * 8;     // rows
  static constexpr int kTilesM = kM / kTileM;
  static constexpr int kTilePieces = kStageSteps * kStepBytes / 16;  // pieces of 16 bytes
  static constexpr int kRowPieces = kStageK * 2 / 16;
  static constexpr int kTilesAtOnce = kThreads / kTilePieces;
  static constexpr int kRowsAtOnce = kThreads / kRowPieces;
  static constexpr int kWeightBytes = kTilesM * kTilePieces * 16;
  static constexpr int kStageBytes = kWeightBytes + kN * kRowPieces * 16;

  unsigned char* shared;
  const unsigned char *w, *x;    // this thread's first piece of stage 0
  long long w_stride, x_stride;  // bytes to its next tile's, its next row's
  int live_tiles, live_rows;     // how many of them there are
  int step, n_steps, k_left;     // of stage 0: the piece's step, and the k from the piece on

  __device__ Block(const Args& a, unsigned char* memory, int n_tiles)
      : shared(memory), n_steps(static_cast<int>(a.k / kStepK)) {
    const int tile = blockIdx.x * kTilesM + threadIdx.x / kTilePieces;
    const long long row = row0() + threadIdx.x / kRowPieces;
    const int k = threadIdx.x % kRowPieces * 8;
    step = threadIdx.x % kTilePieces / 32;
    k_left = static_cast<int>(a.k) - k;
    w_stride = static_cast<long long>(kTilesAtOnce) * n_steps * kStepBytes;
    x_stride = kRowsAtOnce * a.k * 2;
    live_tiles = max(0, (n_tiles - tile + kTilesAtOnce - 1) / kTilesAtOnce);
    live_rows = static_cast<int>(max(
        0LL, min((a.n_rows - row + kRowsAtOnce - 1) / kRowsAtOnce, static_cast<long long>(kN))));
    w = static_cast<const unsigned char*>(a.w) +
        static_cast<long long>(live_tiles > 0 ? tile : 0) * n_steps * kStepBytes +
        threadIdx.x % kTilePieces * 16;
    x = static_cast<const unsigned char*>(a.x) + ((live_rows > 0 ? row * a.k : 0) + k) * 2;
  }

  static __device__ long long row0() { return static_cast<long long>(blockIdx.y) * kN; }
  static __device__ long long output0() { return static_cast<long long>(blockIdx.x) * kM; }
  __device__ unsigned char* weights(int stage) const {
    return shared + stage % kStages * kStageBytes;
  }
  __device__ unsigned char* rows(int stage) const { return weights(stage) + kWeightBytes; }

  __device__ __forceinline__ void fetch_weights(int stage) const {
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
                                              const unsigned char* weights,
                                              const unsigned char* rows, int step) {
  const int lane = threadIdx.x & 31, r = (lane & 7) + (lane >> 4) * 8;
  const int piece = step * 2 + ((lane >> 3) & 1);
  uint4 fragment[kTiles];
#pragma unroll
  for (int m = 0; m < kTiles; ++m)
    fragment[m] = *reinterpret_cast<const uint4*>(weights + (m * kStageSteps + step) * kStepBytes +
                                                  lane * 16);
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
template <int kTiles, int kColumns>
__device__ __forceinline__ void store(const Args& a, unsigned char* shared,
                                      const Sums<kTiles, kColumns>& sums, int warp_m, int warp_n) {
  using B = Block<kTiles, kColumns>;
  constexpr int kFloatStride = B::kM + 4, kShortStride = B::kM + 8;  // 16 bytes against conflicts
  static_assert(B::kN * kFloatStride * 4 <= kStages * B::kStageBytes);
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
constexpr int blocks_of(int tiles, int columns) {
  return tiles * columns == 16 ? 1 : tiles * columns == 8 ? 2 : 3;
}

template <int kTiles, int kColumns>
__global__ void __launch_bounds__(kThreads, blocks_of(kTiles, kColumns))
    tiles_kernel(Args a, int n_tiles) {
  extern __shared__ __align__(16) unsigned char shared[];
  let_next_kernel_start();
  const int warp = threadIdx.x >> 5, warp_m = warp % kWarpsM, warp_n = warp / kWarpsM;
  const Block<kTiles, kColumns> block(a, shared, n_tiles);
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
    const unsigned char* weights =
        block.weights(stage) + warp_m * kTiles * kStageSteps * kStepBytes;
    const unsigned char* rows = block.rows(stage) + warp_n * kColumns * 8 * 128;
    if ((stage + 1) * kStageSteps <= n_steps) {
#pragma unroll
      for (int step = 0; step < kStageSteps; ++step) multiply_step(segment, weights, rows, step);
    } else {
      for (int step = 0; stage * kStageSteps + step < n_steps; ++step)
        multiply_step(segment, weights, rows, step);
    }
    if ((stage + 1) % kStagesPerSegment != 0 && stage + 1 < n_stages) continue;
    total.add(segment, stage < kStagesPerSegment);
    segment.clear();
  }
  wait_copies<0>();
  __syncthreads();  // the stages' memory is free
  store(a, shared, total, warp_m, warp_n);
}

using Kernel = void (*)(Args, int);

struct Tiling {
  Kernel kernel;
  int outputs, rows, shared_bytes;
  float cost;  // of a block, about: larger ones read less a product
};

template <int kTiles, int kColumns>
constexpr Tiling tiling_of(float cost) {
  using B = Block<kTiles, kColumns>;
  return {tiles_kernel<kTiles, kColumns>, B::kM, B::kN, kStages * B::kStageBytes, cost};
}

dim3 grid_of(const Args& a, const Tiling& c) {
  return dim3(static_cast<unsigned>((a.n + c.outputs - 1) / c.outputs),
              static_cast<unsigned>((a.n_rows + c.rows - 1) / c.rows));
}

// The blocks that end first when every multiprocessor takes one after the other.
const Tiling& choose(const Args& a, int n_sms) {
  static constexpr Tiling kTilings[] = {tiling_of<2, 8>(1.0f), tiling_of<2, 4>(0.58f),
                                        tiling_of<1, 4>(0.36f)};
  const Tiling* best = nullptr;
  float best_cost = 0;
  for (const Tiling& c : kTilings) {
    const dim3 grid = grid_of(a, c);
    const auto waves =
        static_cast<float>((static_cast<long long>(grid.x) * grid.y + n_sms - 1) / n_sms);
    if (best != nullptr && waves * c.cost >= best_cost) continue;
    best = &c;
    best_cost = waves * c.cost;
  }
  return *best;
}

}  // namespace

bool takes_sm80_tiles(const Args& a) {
  return a.w_type == DType::bf16 && a.x_type == DType::bf16 && a.k % kStepK == 0 && a.k > 0 &&
         (a.y_type == DType::f32 || a.y_type == DType::bf16) && a.n_rows <= 65535 * 64;
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
