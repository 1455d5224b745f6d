// y = activation(gate) * up: the device kernel of every gated activation, a thread per eight
// elements, or per element where the batch is not made of whole 16 bytes.
#pragma once

#include <cuda_runtime.h>

#include "kernels/device.cuh"

namespace millrace {

inline constexpr int kGatedThreads = 128;

template <class Activation, class Args, int kEach>
__global__ void __launch_bounds__(kGatedThreads) gated_kernel(Args a) {
  let_next_kernel_start();
  wait_for_previous_kernel();
  const long long i = (static_cast<long long>(blockIdx.x) * kGatedThreads + threadIdx.x) * kEach;
  if (i >= a.n_rows * a.n) return;
  float gate[kEach], up[kEach];
  load_several(gate, a.gate, a.type, i);
  load_several(up, a.up, a.type, i);
#pragma unroll
  for (int j = 0; j < kEach; ++j) gate[j] = Activation::of(gate[j]) * up[j];
  store_several(a.y, a.type, i, gate);
}

template <class Activation, class Args>
int launch_gated(const Args& a, void* stream) {
  if (a.n_rows == 0) return cudaSuccess;
  const bool in_eights = a.n_rows * a.n % 8 == 0 && are_aligned(a.gate, a.up, a.y);
  const long long per_block = kGatedThreads * (in_eights ? 8LL : 1LL);
  const dim3 grid(static_cast<unsigned>((a.n_rows * a.n + per_block - 1) / per_block));
  return overlapped_launch(
      in_eights ? gated_kernel<Activation, Args, 8> : gated_kernel<Activation, Args, 1>,
      {grid, kGatedThreads, 0}, stream, a);
}

}  // namespace millrace
