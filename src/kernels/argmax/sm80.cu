// Two kernels: blocks find the best of pieces of a row, then one block a row the best of those. An
// element under selection is one integer, the order of topk/order.h above the complement of its
// index, so the greatest is right whatever the order of comparisons.
#include <cuda_runtime.h>

#include "kernels/argmax/args.h"
#include "kernels/argmax/device.h"
#include "kernels/device.cuh"

namespace millrace::argmax {
namespace {

using Candidate = unsigned long long;

constexpr int kThreads = 256;
constexpr int kEach = 16;  // elements a thread has in flight
constexpr int kPiece = kThreads * kEach;
constexpr int kFoldThreads = 128;

__host__ __device__ long long pieces_of(long long n) {
  return (n + kPiece - 1) / kPiece;
}

// topk::key_of, made unsigned: NaN is below -Inf, -0 just below +0.
__device__ __forceinline__ unsigned order_of(float x) {
  if (x != x) return 1;
  const auto bits = static_cast<int>(__float_as_uint(x));
  return static_cast<unsigned>(bits ^ ((bits >> 31) & 0x7fffffff)) ^ 0x80000000u;
}

__device__ __forceinline__ Candidate candidate_of(float x, long long i) {
  return static_cast<Candidate>(order_of(x)) << 32 | (0xffffffffu - static_cast<unsigned>(i));
}

// The greatest of a block's, in thread 0.
template <int kThreadsOfBlock>
__device__ Candidate greatest_of_block(Candidate best) {
  __shared__ Candidate warps[kThreadsOfBlock / 32];
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) best = max(best, __shfl_xor_sync(~0u, best, d));
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = best;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kThreadsOfBlock / 32; ++w) best = max(best, warps[w]);
  return best;
}

__global__ void __launch_bounds__(kThreads) piece_kernel(Args a, Candidate* pieces) {
  let_next_kernel_start();
  wait_for_previous_kernel();
  const long long row = blockIdx.y;
  const long long first = static_cast<long long>(blockIdx.x) * kPiece + threadIdx.x;
  const float* x = a.x + row * a.n;
  float values[kEach];
#pragma unroll
  for (int j = 0; j < kEach; ++j)
    if (first + j * kThreads < a.n) values[j] = x[first + j * kThreads];
  Candidate best = 0;
#pragma unroll
  for (int j = 0; j < kEach; ++j)
    if (first + j * kThreads < a.n) best = max(best, candidate_of(values[j], first + j * kThreads));
  best = greatest_of_block<kThreads>(best);
  if (threadIdx.x == 0) pieces[row * pieces_of(a.n) + blockIdx.x] = best;
}

__global__ void __launch_bounds__(kFoldThreads) fold_kernel(Args a, const Candidate* pieces) {
  let_next_kernel_start();
  wait_for_previous_kernel();
  const long long row = blockIdx.x, n = pieces_of(a.n);
  Candidate best = 0;
  for (long long i = threadIdx.x; i < n; i += kFoldThreads)
    best = max(best, __ldcg(pieces + row * n + i));
  best = greatest_of_block<kFoldThreads>(best);
  if (threadIdx.x == 0) a.index[row] = static_cast<int>(0xffffffffu - static_cast<unsigned>(best));
}

}  // namespace

bool takes_sm80(const Args& a) {
  return a.n_rows <= 65535;
}

size_t sm80_workspace_bytes(const Args& a, int) {
  return static_cast<size_t>(a.n_rows * pieces_of(a.n)) * sizeof(Candidate);
}

int launch_sm80(const Args& a, void* stream, void* workspace) {
  if (a.n_rows == 0) return cudaSuccess;
  auto* pieces = static_cast<Candidate*>(workspace);
  const dim3 grid(static_cast<unsigned>(pieces_of(a.n)), static_cast<unsigned>(a.n_rows));
  if (int e = overlapped_launch(piece_kernel, {grid, kThreads, 0}, stream, a, pieces);
      e != cudaSuccess)
    return e;
  return overlapped_launch(fold_kernel, {dim3(static_cast<unsigned>(a.n_rows)), kFoldThreads, 0},
                           stream, a, pieces);
}

}  // namespace millrace::argmax
