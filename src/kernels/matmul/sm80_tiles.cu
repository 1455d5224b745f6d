// Any number of rows, on any device since sm_80: blocks of 128 outputs x 64 rows. Weights go from
// global memory straight into tensor-core operands (they are packed as such); rows of x are staged
// through shared memory, a segment of k at a time, double buffered with cp.async.
#include <cuda_runtime.h>

#include "kernels/device.cuh"
#include "kernels/matmul/args.h"
#include "kernels/matmul/device.h"
#include "kernels/matmul/tile.cuh"

namespace millrace::matmul {
namespace {

constexpr int kWarps = 4;
constexpr int kTilesPerWarp = 2;                          // 32 outputs
constexpr int kBlockM = kWarps * kTilesPerWarp * kTileM;  // 128 outputs
constexpr int kBlockN = 64;                               // rows of x
constexpr int kColumns = kBlockN / 8;                     // N operands of 8 rows
constexpr int kStride = kSegment + 8;                     // bf16; padded against bank conflicts

using XTile = unsigned short[kBlockN][kStride];

__device__ __forceinline__ void stage_x(XTile& tile, const Args& a, long long row0, int segment) {
  // 16 bytes a thread: 16 threads cover one row's 128 values.
  for (int i = threadIdx.x; i < kBlockN * (kSegment / 8); i += blockDim.x) {
    const int r = i / (kSegment / 8), c = i % (kSegment / 8) * 8;
    const long long k = static_cast<long long>(segment) * kSegment + c;
    const bool live = row0 + r < a.n_rows && k < a.k;
    const auto* src = static_cast<const unsigned short*>(a.x) + (live ? (row0 + r) * a.k + k : 0);
    const unsigned dst = static_cast<unsigned>(__cvta_generic_to_shared(&tile[r][c]));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src),
                 "r"(live ? 16 : 0)
                 : "memory");
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// The B operands of two neighbouring columns (16 rows of x) at one k16 step.
__device__ __forceinline__ void load_b(unsigned (&b)[4], const XTile& tile, int column, int step) {
  const int lane = threadIdx.x & 31;
  const int r = column * 8 + (lane & 7) + (lane >> 4) * 8,
            c = step * kStepK + ((lane >> 3) & 1) * 8;
  const unsigned src = static_cast<unsigned>(__cvta_generic_to_shared(&tile[r][c]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(src)
               : "memory");
}

__global__ void __launch_bounds__(32 * kWarps) tiles_kernel(Args a, int n_tiles) {
  __shared__ XTile x[2];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const long long row0 = static_cast<long long>(blockIdx.y) * kBlockN;
  const int tile0 = static_cast<int>(blockIdx.x) * (kWarps * kTilesPerWarp) + warp * kTilesPerWarp;
  const int n_steps = static_cast<int>(a.k / kStepK);
  const int n_segments = (n_steps + kStepsPerSegment - 1) / kStepsPerSegment;
  const auto* w = static_cast<const uint4*>(a.w);

  float total[kTilesPerWarp][kColumns][4];
  stage_x(x[0], a, row0, 0);
  for (int segment = 0; segment < n_segments; ++segment) {
    if (segment + 1 < n_segments) {
      stage_x(x[(segment + 1) & 1], a, row0, segment + 1);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    float sum[kTilesPerWarp][kColumns][4] = {};
    const int steps = min(kStepsPerSegment, n_steps - segment * kStepsPerSegment);
    for (int step = 0; step < steps; ++step) {
      uint4 fragment[kTilesPerWarp];
#pragma unroll
      for (int m = 0; m < kTilesPerWarp; ++m) {
        const int tile =
            min(tile0 + m, n_tiles - 1);  // one past the end is computed and not stored
        const long long at =
            static_cast<long long>(tile) * n_steps + segment * kStepsPerSegment + step;
        fragment[m] = __ldg(w + at * 32 + lane);
      }
#pragma unroll
      for (int column = 0; column < kColumns; column += 2) {
        unsigned b[4];
        load_b(b, x[segment & 1], column, step);
#pragma unroll
        for (int m = 0; m < kTilesPerWarp; ++m) {
          mma_step(sum[m][column], fragment[m], b[0], b[1]);
          mma_step(sum[m][column + 1], fragment[m], b[2], b[3]);
        }
      }
    }
#pragma unroll
    for (int m = 0; m < kTilesPerWarp; ++m)
#pragma unroll
      for (int column = 0; column < kColumns; ++column)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          total[m][column][i] =
              segment == 0 ? sum[m][column][i] : total[m][column][i] + sum[m][column][i];
    __syncthreads();
  }

  const int g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int m = 0; m < kTilesPerWarp; ++m)
#pragma unroll
    for (int column = 0; column < kColumns; ++column)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const long long r = row0 + column * 8 + 2 * t + (i & 1);
        const long long o = static_cast<long long>(tile0 + m) * kTileM + g + (i >> 1) * 8;
        if (r < a.n_rows && o < a.n)
          store_element(a.y, a.y_type == DType::bf16, r * a.n + o, total[m][column][i]);
      }
}

}  // namespace

bool takes_sm80_tiles(const Args& a) {
  return a.w_type == DType::bf16 && a.x_type == DType::bf16 && a.k % kStepK == 0 && a.k > 0 &&
         (a.y_type == DType::f32 || a.y_type == DType::bf16);
}

int launch_sm80_tiles(const Args& a, void* stream, void*) {
  if (a.n_rows == 0 || a.n == 0) return cudaSuccess;
  const auto n_tiles = static_cast<int>((a.n + kTileM - 1) / kTileM);
  const dim3 grid(static_cast<unsigned>((a.n + kBlockM - 1) / kBlockM),
                  static_cast<unsigned>((a.n_rows + kBlockN - 1) / kBlockN));
  tiles_kernel<<<grid, 32 * kWarps, 0, static_cast<cudaStream_t>(stream)>>>(a, n_tiles);
  return cudaGetLastError();
}

}  // namespace millrace::matmul
