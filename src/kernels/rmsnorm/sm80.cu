// A block per row. Class cuda.rmsnorm.lanes256: 256 lanes, lane j taking elements j, j + 256, ...
// as an FMA chain in ascending order, folded in each warp by exchanges over 16, 8, 4, 2, 1, and the
// eight warps in ascending order; the rest as in op.h, with correctly rounded division and square
// root.
#include <cuda_runtime.h>

#include "kernels/device.cuh"
#include "kernels/rmsnorm/args.h"
#include "kernels/rmsnorm/device.h"

namespace millrace::rmsnorm {
namespace {

constexpr int kLanes = 256;

__device__ float fold(float sum) {
  __shared__ float warps[kLanes / 32];
#pragma unroll
  for (int distance = 16; distance > 0; distance >>= 1) sum += __shfl_xor_sync(~0u, sum, distance);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = warps[0];
#pragma unroll
  for (int w = 1; w < kLanes / 32; ++w) total += warps[w];
  return total;
}

__global__ void __launch_bounds__(kLanes) rmsnorm_kernel(Args a) {
  let_next_kernel_start();
  wait_for_previous_kernel();
  const bool x_bf16 = a.x_type == DType::bf16, y_bf16 = a.y_type == DType::bf16;
  const long long row = static_cast<long long>(blockIdx.x) * a.n;
  float sum = 0;
  for (long long i = threadIdx.x; i < a.n; i += kLanes) {
    const float x = load_element(a.x, x_bf16, row + i);
    sum = __fmaf_rn(x, x, sum);
  }
  const float mean = __fdiv_rn(fold(sum), static_cast<float>(a.n));
  const float scale = __fdiv_rn(1.0f, __fsqrt_rn(mean + a.eps));
  for (long long i = threadIdx.x; i < a.n; i += kLanes)
    store_element(a.y, y_bf16, row + i, load_element(a.x, x_bf16, row + i) * scale * a.weight[i]);
}

}  // namespace

int launch_sm80(const Args& a, void* stream, void*) {
  const long long n_groups = a.n_rows * a.n_groups;
  if (n_groups == 0) return cudaSuccess;
  return overlapped_launch(rmsnorm_kernel, {dim3(static_cast<unsigned>(n_groups)), kLanes, 0},
                           stream, a);
}

}  // namespace millrace::rmsnorm
