// Up to 64 rows, on any device since sm_80: a batch of decodes. Weights are streamed once, straight
// into tensor-core operands; what costs is bringing x to every block, so blocks own up to four
// tiles of 16 outputs. A round is four segments of k: warp (m, s) multiplies segment s of tile m by
// all rows, whose part of x all tiles share in shared memory, and the four sums are added in
// ascending order by the warps that own them. x comes a round ahead, weights up to four: 64 KB a
// multiprocessor are in flight whatever the number of tiles.
#include <cuda_runtime.h>

#include "kernels/device.cuh"
#include "kernels/device_weights.cuh"
#include "kernels/matmul/args.h"
#include "kernels/matmul/device.h"
#include "kernels/matmul/tile.cuh"
#include "kernels/shared_tiles.cuh"

namespace millrace::matmul {
namespace {

constexpr int kMaxRows = 64;
constexpr int kMaxTiles = 4;    // of a block
constexpr int kRoundWarps = 4;  // segments of a round
constexpr int kRoundSteps = kRoundWarps * kStepsPerSegment;
constexpr int kRoundK = kRoundWarps * kSegment;
constexpr int kStride = kRoundK + 8;  // bf16 from row to row; an odd number of 16 bytes
// Above this, blocks of sm80_tiles fill a device too, and read x fewer times.
constexpr long long kMaxOutputs = 132 * kMaxTiles * kTileM;

struct Shape {
  int n_steps, n_segments, n_rounds;
};

template <int kColumns>
__device__ __forceinline__ void stage_x(unsigned short* to, const Args& a, int round) {
  constexpr int kPieces = kRoundK / 8;
  for (int i = threadIdx.x; i < kColumns * 8 * kPieces; i += blockDim.x) {
    const int r = i / kPieces, c = i % kPieces * 8;
    const long long k = static_cast<long long>(round) * kRoundK + c;
    const bool live = r < a.n_rows && k < a.k;
    const auto* from = static_cast<const unsigned short*>(a.x) + (live ? r * a.k + k : 0);
    copy_async(to + r * kStride + c, from, live);
  }
}

// Loads part j of this warp's segment of a round, as far as there is one.
template <class W>
__device__ __forceinline__ void load_part(typename W::Part& part, const unsigned char* w,
                                          const Shape& shape, int round, int part_of_round, int j) {
  const int segment = round * kRoundWarps + part_of_round;
  const int live = shape.n_steps - segment * kStepsPerSegment;
  W::template load<device_weights::FromGlobal>(part, w + W::segment_at(segment), segment, j, live);
}

// The sums of one segment; each part is replaced by that of kDepth rounds later once used.
template <class W, int kColumns, int kDepth>
__device__ __forceinline__ void multiply(float (&sum)[kColumns][4],
                                         typename W::Part (&parts)[device_weights::kParts],
                                         const unsigned short* x, const unsigned char* w,
                                         const Shape& shape, int round, int part) {
  const int lane = threadIdx.x & 31;
  const int first = round * kRoundSteps + part * kStepsPerSegment;
  const unsigned short* row =
      x + ((lane & 7) + (lane >> 4) * 8) * kStride + part * kSegment + ((lane >> 3) & 1) * 8;
#pragma unroll
  for (int j = 0; j < device_weights::kParts; ++j) {
    uint4 steps[kBlockSteps];
    W::widen(steps, parts[j]);
#pragma unroll
    for (int i = 0; i < kBlockSteps; ++i) {
      const int s = j * kBlockSteps + i;
      if (first + s >= shape.n_steps) break;
#pragma unroll
      for (int c = 0; c < kColumns; c += 2) {
        unsigned b[4];
        load_matrices(b, row + c * 8 * kStride + s * kStepK);
        mma_step(sum[c], steps[i], b[0], b[1]);
        mma_step(sum[c + 1], steps[i], b[2], b[3]);
      }
    }
    load_part<W>(parts[j], w, shape, round + kDepth, part, j);
  }
}

// Thread block: kRoundWarps warps a tile. kDepth: rounds of weights in flight.
template <class W, int kColumns, int kDepth>
__global__ void __launch_bounds__(32 * kRoundWarps * kMaxTiles / kDepth, 1)
    batch_kernel(Args a, Shape shape) {
  constexpr int kOwn = (kColumns + kRoundWarps - 1) / kRoundWarps;  // columns a warp adds up
  constexpr int kXElems = kColumns * 8 * kStride;
  extern __shared__ __align__(16) unsigned char shared[];
  auto* x = reinterpret_cast<unsigned short*>(shared);
  auto* partial = reinterpret_cast<float4*>(x + 2 * kXElems);  // [segment][tile][column][lane]
  let_next_kernel_start();
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int n_tiles = blockDim.x / (32 * kRoundWarps);
  const int m = warp / kRoundWarps, part = warp % kRoundWarps;
  const auto last_tile = static_cast<int>((a.n - 1) / kTileM);
  const int tile = blockIdx.x * n_tiles + m;
  // A tile past the end repeats the last one and is not stored.
  const unsigned char* w =
      static_cast<const unsigned char*>(a.w) + min(tile, last_tile) * W::tile_bytes(shape.n_steps);
  typename W::Part parts[kDepth][device_weights::kParts];
#pragma unroll
  for (int j = 0; j < kDepth; ++j)
#pragma unroll
    for (int i = 0; i < device_weights::kParts; ++i)
      load_part<W>(parts[j][i], w, shape, j, part, i);
  wait_for_previous_kernel();
  stage_x<kColumns>(x, a, 0);
  close_copies();

  float total[kOwn][4] = {};
  for (int round0 = 0; round0 < shape.n_rounds; round0 += kDepth) {
#pragma unroll
    for (int j = 0; j < kDepth; ++j) {
      const int round = round0 + j;
      if (round >= shape.n_rounds) break;
      if (round + 1 < shape.n_rounds)
        stage_x<kColumns>(x + (round + 1) % 2 * kXElems, a, round + 1);
      close_copies();
      wait_copies<1>();
      __syncthreads();
      float sum[kColumns][4] = {};
      multiply<W, kColumns, kDepth>(sum, parts[j], x + round % 2 * kXElems, w, shape, round, part);
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        partial[((part * n_tiles + m) * kColumns + c) * 32 + lane] =
            make_float4(sum[c][0], sum[c][1], sum[c][2], sum[c][3]);
      __syncthreads();
#pragma unroll
      for (int own = 0; own < kOwn; ++own) {
        const int c = part + own * kRoundWarps;
        if (c >= kColumns) break;
        for (int s = 0; s < kRoundWarps && round * kRoundWarps + s < shape.n_segments; ++s) {
          const float4 p = partial[((s * n_tiles + m) * kColumns + c) * 32 + lane];
          const bool is_first = round == 0 && s == 0;
          total[own][0] = is_first ? p.x : total[own][0] + p.x;
          total[own][1] = is_first ? p.y : total[own][1] + p.y;
          total[own][2] = is_first ? p.z : total[own][2] + p.z;
          total[own][3] = is_first ? p.w : total[own][3] + p.w;
        }
      }
    }
  }

#pragma unroll
  for (int own = 0; own < kOwn; ++own)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int c = part + own * kRoundWarps;
      const long long r = c * 8 + 2 * (lane & 3) + (i & 1);
      const long long o = static_cast<long long>(tile) * kTileM + (lane >> 2) + (i >> 1) * 8;
      if (c < kColumns && r < a.n_rows && o < a.n)
        store_element(a.y, a.y_type == DType::bf16, r * a.n + o, total[own][i]);
    }
}

using Kernel = void (*)(Args, Shape);

template <int kColumns>
Kernel bf16_kernel_for(int n_tiles) {
  using W = device_weights::Bf16;
  if (n_tiles == 1) return batch_kernel<W, kColumns, 4>;
  return n_tiles == 2 ? batch_kernel<W, kColumns, 2> : batch_kernel<W, kColumns, 1>;
}

// Of weights in 8 bits and less there are fewer kernels: of 16 and of 64 rows, two rounds ahead.
int max_tiles(const Args& a) {
  return a.w_type == DType::bf16 ? kMaxTiles : 2;
}
// Columns of 8 rows.
int columns_for(const Args& a) {
  if (a.n_rows <= 16) return 2;
  return a.n_rows <= 32 && a.w_type == DType::bf16 ? 4 : 8;
}

Kernel kernel_for(const Args& a, int n_tiles) {
  const int columns = columns_for(a);
  return device_weights::with_format(a.w_type, [&](auto format) -> Kernel {
    using W = decltype(format);
    if constexpr (W::kIsPacked)
      return columns == 2 ? batch_kernel<W, 2, 2> : batch_kernel<W, 8, 2>;
    else
      return columns == 2   ? bf16_kernel_for<2>(n_tiles)
             : columns == 4 ? bf16_kernel_for<4>(n_tiles)
                            : bf16_kernel_for<8>(n_tiles);
  });
}

size_t shared_bytes(int columns, int n_tiles) {
  return static_cast<size_t>(2 * columns * 8 * kStride) * 2 +
         static_cast<size_t>(kRoundWarps * n_tiles * columns) * 32 * sizeof(float4);
}

}  // namespace

bool takes_sm80_batch(const Args& a) {
  return takes_sm80_tiles(a) && a.n_rows <= kMaxRows && a.n <= kMaxOutputs;
}

// Rows come in 16, 32 or 64; a block takes all of them.
TileShape tiles_sm80_batch(const Args& a, int n_sms) {
  const long long n_tiles = (a.n + kTileM - 1) / kTileM;
  const long long per_block =
      max(1LL, min(static_cast<long long>(max_tiles(a)), (n_tiles + n_sms - 1) / n_sms));
  return {8 * columns_for(a), (n_tiles + per_block - 1) / per_block, 1};
}

int launch_sm80_batch(const Args& a, void* stream, void* workspace) {
  if (a.n_rows == 0 || a.n == 0) return cudaSuccess;
  DeviceSize device;
  if (cudaError_t e = ask_device(device); e != cudaSuccess) return e;
  const auto all_tiles = static_cast<int>((a.n + kTileM - 1) / kTileM);
  const int n_tiles = max(1, min(max_tiles(a), (all_tiles + device.n_sms - 1) / device.n_sms));
  const int columns = columns_for(a);
  const LaunchShape launch = {
      .grid = dim3(static_cast<unsigned>((all_tiles + n_tiles - 1) / n_tiles)),
      .n_threads = static_cast<unsigned>(32 * kRoundWarps * n_tiles),
      .shared_bytes = shared_bytes(columns, n_tiles)};
  // A small device: the other variant of the class needs less.
  if (launch.shared_bytes > static_cast<size_t>(device.shared_bytes))
    return launch_sm80_tiles(a, stream, workspace);
  const Kernel kernel = kernel_for(a, n_tiles);
  if (cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(launch.shared_bytes));
      e != cudaSuccess)
    return e;
  const auto n_steps = static_cast<int>(a.k / kStepK);
  const Shape shape = {.n_steps = n_steps,
                       .n_segments = (n_steps + kStepsPerSegment - 1) / kStepsPerSegment,
                       .n_rounds = (n_steps + kRoundSteps - 1) / kRoundSteps};
  return overlapped_launch(kernel, launch, stream, a, shape);
}

}  // namespace millrace::matmul
