// A thread per pair or copied element, in the arithmetic of op.h: the angle is one wrapping integer
// product, so no position loses precision.
#include <cuda_runtime.h>

#include "base/math_cuda.cuh"
#include "kernels/device.cuh"
#include "kernels/rope/args.h"
#include "kernels/rope/device.h"

namespace millrace::rope {
namespace {

constexpr int kThreads = 128;

__device__ math::cuda::SinCos angle_of(const Args& a, long long r, int pair) {
  const auto position = static_cast<unsigned long long>(static_cast<long long>(a.positions[r]));
  const auto phase = static_cast<int>(static_cast<unsigned>((position * a.turns[pair]) >> 32));
  return math::cuda::sincos(static_cast<float>(phase) * 0x1.921fb6p-30f);
}

__device__ void turn_pair(const Args& a, long long x_at, long long y_at, int pair,
                          math::cuda::SinCos t) {
  const bool is_bf16 = a.type == DType::bf16;
  const auto half = static_cast<int>(a.rot_dim / 2);
  const int first = a.order == PairOrder::normal ? 2 * pair : pair;
  const int second = a.order == PairOrder::normal ? 2 * pair + 1 : pair + half;
  const float x0 = load_element(a.x, is_bf16, x_at + first);
  const float x1 = load_element(a.x, is_bf16, x_at + second);
  const float c = t.cos * a.magnitude, s = t.sin * a.magnitude;
  store_element(a.y, is_bf16, y_at + first, __fmaf_rn(x0, c, -(x1 * s)));
  store_element(a.y, is_bf16, y_at + second, __fmaf_rn(x1, c, x0 * s));
}

// A block per row; thread i owns pair i % half of head i / half, then the copied elements.
__global__ void __launch_bounds__(kThreads) rope_kernel(Args a) {
  let_next_kernel_start();
  wait_for_previous_kernel();
  const long long r = blockIdx.x;
  const auto half = static_cast<int>(a.rot_dim / 2), n_heads = static_cast<int>(a.n_heads);
  for (int i = threadIdx.x; i < n_heads * half; i += kThreads) {
    const int head = i / half, pair = i % half;
    turn_pair(a, r * a.x_stride + head * a.head_dim, r * a.y_stride + head * a.head_dim, pair,
              angle_of(a, r, pair));
  }
  if (a.x == a.y) return;
  const auto rest = static_cast<int>(a.head_dim - a.rot_dim);
  for (int i = threadIdx.x; i < n_heads * rest; i += kThreads) {
    const long long at = i / rest * a.head_dim + a.rot_dim + i % rest;
    const bool is_bf16 = a.type == DType::bf16;
    store_element(a.y, is_bf16, r * a.y_stride + at,
                  load_element(a.x, is_bf16, r * a.x_stride + at));
  }
}

}  // namespace

int launch_sm80(const Args& a, void* stream, void*) {
  if (a.n_rows == 0 || a.n_heads == 0) return cudaSuccess;
  return overlapped_launch(rope_kernel, {dim3(static_cast<unsigned>(a.n_rows)), kThreads, 0},
                           stream, a);
}

}  // namespace millrace::rope
