// Two kernels: blocks find the best of pieces of a row, then one block a row the best of those.
#include <cuda_runtime.h>

#include "kernels/argmax/args.h"
#include "kernels/argmax/device.h"
#include "kernels/device.cuh"
#include "kernels/topk/tile.cuh"

namespace millrace::argmax {
namespace {

using Candidate = topk::DeviceCandidate;
using topk::greatest_of_block;

constexpr int kThreads = 256;
constexpr int kEach = 16;  // elements a thread has in flight
constexpr int kPiece = kThreads * kEach;
constexpr int kFoldThreads = 128;

__host__ __device__ long long pieces_of(long long n) {
  return (n + kPiece - 1) / kPiece;
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
    if (first + j * kThreads < a.n)
      best = max(best, topk::device_candidate(values[j], first + j * kThreads));
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
  if (threadIdx.x == 0) a.index[row] = topk::index_of(best);
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
