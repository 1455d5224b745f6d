// A thread per eight elements, or per element where rows are not made of whole 16 bytes. Class
// cuda.add.f32: one correctly rounded f32 addition, rounded once more where y is bf16.
#include <cuda_runtime.h>

#include "kernels/add/args.h"
#include "kernels/add/device.h"
#include "kernels/device.cuh"

namespace millrace::add {
namespace {

constexpr int kThreads = 128;

template <int kEach>
__global__ void __launch_bounds__(kThreads) add_kernel(Args a) {
  let_next_kernel_start();
  wait_for_previous_kernel();
  const long long i = (static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x) * kEach;
  if (i >= a.n_rows * a.n) return;
  float x[kEach], b[kEach];
  load_several(x, a.a, a.a_type, i);
  load_several(b, a.b, a.b_type, a.is_bias ? i % a.n : i);
#pragma unroll
  for (int j = 0; j < kEach; ++j) x[j] = x[j] + b[j];
  store_several(a.y, a.y_type, i, x);
}

}  // namespace

int launch_sm80(const Args& a, void* stream, void*) {
  if (a.n_rows == 0) return cudaSuccess;
  const bool in_eights = a.n % 8 == 0 && are_aligned(a.a, a.b, a.y);
  const long long per_block = kThreads * (in_eights ? 8LL : 1LL);
  const dim3 grid(static_cast<unsigned>((a.n_rows * a.n + per_block - 1) / per_block));
  return overlapped_launch(in_eights ? add_kernel<8> : add_kernel<1>, {grid, kThreads, 0}, stream,
                           a);
}

}  // namespace millrace::add
