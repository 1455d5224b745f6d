// Class cuda.rmsnorm.lanes256 (tile.cuh). Rows of more than 256 elements have a block each, a
// thread a lane; shorter ones (the norms of heads) a warp each, a thread a lane of every part.
#include <cuda_runtime.h>

#include "kernels/device.cuh"
#include "kernels/rmsnorm/args.h"
#include "kernels/rmsnorm/device.h"
#include "kernels/rmsnorm/tile.cuh"

namespace millrace::rmsnorm {
namespace {

constexpr int kRowsPerBlock = 4;  // of the short rows: a warp each

// kHeld: elements a thread keeps in registers between the two passes; what lies beyond is read
// again.
template <int kHeld>
__global__ void __launch_bounds__(kLanes) long_rows_kernel(Args a) {
  __shared__ float parts[kParts];
  let_next_kernel_start();
  const bool x_bf16 = a.x_type == DType::bf16, y_bf16 = a.y_type == DType::bf16;
  const long long row = static_cast<long long>(blockIdx.x) * a.n, lane = threadIdx.x;
  float x[kHeld], weight[kHeld];
#pragma unroll
  for (int j = 0; j < kHeld; ++j)  // weights never change: no need to wait
    weight[j] = lane + j * kLanes < a.n ? a.weight[lane + j * kLanes] : 0.0f;
  wait_for_previous_kernel();
#pragma unroll
  for (int j = 0; j < kHeld; ++j)
    x[j] = lane + j * kLanes < a.n ? load_element(a.x, x_bf16, row + lane + j * kLanes) : 0.0f;
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kHeld; ++j) sum = __fmaf_rn(x[j], x[j], sum);
  for (long long i = lane + kHeld * kLanes; i < a.n; i += kLanes) {
    const float more = load_element(a.x, x_bf16, row + i);
    sum = __fmaf_rn(more, more, sum);
  }
  sum = fold_part(sum);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = parts[0];
#pragma unroll
  for (int p = 1; p < kParts; ++p) sum += parts[p];
  const float scale = scale_of(sum, a.n, a.eps);
#pragma unroll
  for (int j = 0; j < kHeld; ++j)
    if (lane + j * kLanes < a.n)
      store_element(a.y, y_bf16, row + lane + j * kLanes, x[j] * scale * weight[j]);
  for (long long i = lane + kHeld * kLanes; i < a.n; i += kLanes)
    store_element(a.y, y_bf16, row + i, load_element(a.x, x_bf16, row + i) * scale * a.weight[i]);
}

__global__ void __launch_bounds__(32 * kRowsPerBlock) short_rows_kernel(Args a) {
  let_next_kernel_start();
  wait_for_previous_kernel();
  const long long r = static_cast<long long>(blockIdx.x) * kRowsPerBlock + threadIdx.x / 32;
  if (r >= a.n_rows) return;  // whole warps
  const bool x_bf16 = a.x_type == DType::bf16, y_bf16 = a.y_type == DType::bf16;
  const auto n = static_cast<int>(a.n), lane = static_cast<int>(threadIdx.x % 32);
  float x[kParts];
#pragma unroll
  for (int p = 0; p < kParts; ++p)
    x[p] = 32 * p + lane < n ? load_element(a.x, x_bf16, r * n + 32 * p + lane) : 0.0f;
  float sum = fold_part(x[0] * x[0]);
#pragma unroll
  for (int p = 1; p < kParts; ++p)
    if (32 * p < n) sum += fold_part(x[p] * x[p]);
  const float scale = scale_of(sum, a.n, a.eps);
#pragma unroll
  for (int p = 0; p < kParts; ++p)
    if (const int i = 32 * p + lane; i < n)
      store_element(a.y, y_bf16, r * n + i, x[p] * scale * a.weight[i]);
}

}  // namespace

// A group is a row by itself.
int launch_sm80(const Args& args, void* stream, void*) {
  Args a = args;
  a.n_rows *= a.n_groups;
  if (a.n_rows == 0) return cudaSuccess;
  if (a.n <= kLanes) {
    const auto blocks = static_cast<unsigned>((a.n_rows + kRowsPerBlock - 1) / kRowsPerBlock);
    return overlapped_launch(short_rows_kernel, {dim3(blocks), 32 * kRowsPerBlock, 0}, stream, a);
  }
  return overlapped_launch(a.n <= 4 * kLanes ? long_rows_kernel<4> : long_rows_kernel<16>,
                           {dim3(static_cast<unsigned>(a.n_rows)), kLanes, 0}, stream, a);
}

}  // namespace millrace::rmsnorm
