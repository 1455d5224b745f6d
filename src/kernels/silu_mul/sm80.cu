// A thread per eight elements, or per element where the batch is not made of whole 16 bytes. Class
// cuda.silu_mul.f32: silu by the polynomial of base/math.h and one correctly rounded f32 product,
// rounded once more where y is bf16.
#include <cuda_runtime.h>

#include "base/math_cuda.cuh"
#include "kernels/device.cuh"
#include "kernels/silu_mul/args.h"
#include "kernels/silu_mul/device.h"

namespace millrace::silu_mul {
namespace {

constexpr int kThreads = 128;

template <int kEach>
__global__ void __launch_bounds__(kThreads) silu_mul_kernel(Args a) {
  let_next_kernel_start();
  wait_for_previous_kernel();
  const long long i = (static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x) * kEach;
  if (i >= a.n_rows * a.n) return;
  float gate[kEach], up[kEach];
  load_several(gate, a.gate, a.type, i);
  load_several(up, a.up, a.type, i);
#pragma unroll
  for (int j = 0; j < kEach; ++j) gate[j] = math::cuda::silu(gate[j]) * up[j];
  store_several(a.y, a.type, i, gate);
}

}  // namespace

int launch_sm80(const Args& a, void* stream, void*) {
  if (a.n_rows == 0) return cudaSuccess;
  const bool in_eights = a.n_rows * a.n % 8 == 0 && are_aligned(a.gate, a.up, a.y);
  const long long per_block = kThreads * (in_eights ? 8LL : 1LL);
  const dim3 grid(static_cast<unsigned>((a.n_rows * a.n + per_block - 1) / per_block));
  return overlapped_launch(in_eights ? silu_mul_kernel<8> : silu_mul_kernel<1>, {grid, kThreads, 0},
                           stream, a);
}

}  // namespace millrace::silu_mul
