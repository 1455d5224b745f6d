// A block per row and slice of its heads, in the arithmetic of op.h: the angle is one wrapping
// integer product, so no position loses precision. The row's sines are made once for the slice.
#include <cuda_runtime.h>

#include "kernels/device.cuh"
#include "kernels/rope/args.h"
#include "kernels/rope/device.h"
#include "kernels/rope/tile.cuh"

namespace millrace::rope {
namespace {

constexpr int kThreads = 128;
constexpr int kMaxPairs = 256;      // of op.h's kMaxRotDim
constexpr int kEnoughBlocks = 256;  // for any device: fewer rows than that are cut into slices

__device__ void turn_pair(const Args& a, long long x_at, long long y_at, int pair, float2 turn) {
  const bool is_bf16 = a.type == DType::bf16;
  const auto half = static_cast<int>(a.rot_dim / 2);
  const int first = a.order == PairOrder::normal ? 2 * pair : pair;
  const int second = a.order == PairOrder::normal ? 2 * pair + 1 : pair + half;
  const float x0 = load_element(a.x, is_bf16, x_at + first);
  const float x1 = load_element(a.x, is_bf16, x_at + second);
  store_element(a.y, is_bf16, y_at + first, turned_first(x0, x1, turn));
  store_element(a.y, is_bf16, y_at + second, turned_second(x0, x1, turn));
}

// Thread i owns pair i % half of head i / half of the slice, then the copied elements.
__global__ void __launch_bounds__(kThreads) rope_kernel(Args a, int slice) {
  __shared__ float2 turns[kMaxPairs];
  let_next_kernel_start();
  wait_for_previous_kernel();
  const long long r = blockIdx.x, head0 = static_cast<long long>(blockIdx.y) * slice;
  const auto half = static_cast<int>(a.rot_dim / 2);
  const auto n_heads = static_cast<int>(min(static_cast<long long>(slice), a.n_heads - head0));
  const long long x_row = r * a.x_stride + head0 * a.head_dim;
  const long long y_row = r * a.y_stride + head0 * a.head_dim;
  const int position = a.positions[r];
  for (int pair = threadIdx.x; pair < half; pair += kThreads)
    turns[pair] = turn_of(position, a.turns[pair], a.magnitude);
  __syncthreads();
  for (int i = threadIdx.x; i < n_heads * half; i += kThreads) {
    const long long head = i / half * a.head_dim;
    turn_pair(a, x_row + head, y_row + head, i % half, turns[i % half]);
  }
  if (a.x == a.y) return;
  const auto rest = static_cast<int>(a.head_dim - a.rot_dim);
  for (int i = threadIdx.x; i < n_heads * rest; i += kThreads) {
    const long long at = i / rest * a.head_dim + a.rot_dim + i % rest;
    const bool is_bf16 = a.type == DType::bf16;
    store_element(a.y, is_bf16, y_row + at, load_element(a.x, is_bf16, x_row + at));
  }
}

}  // namespace

bool takes_sm80(const Args& a) {
  return a.n_heads <= 65535;
}

int launch_sm80(const Args& a, void* stream, void*) {
  if (a.n_rows == 0 || a.n_heads == 0) return cudaSuccess;
  const long long slices = min(a.n_heads, (kEnoughBlocks + a.n_rows - 1) / a.n_rows);
  const auto slice = static_cast<int>((a.n_heads + slices - 1) / slices);
  const dim3 grid(static_cast<unsigned>(a.n_rows),
                  static_cast<unsigned>((a.n_heads + slice - 1) / slice));
  return overlapped_launch(rope_kernel, {grid, kThreads, 0}, stream, a, slice);
}

}  // namespace millrace::rope
