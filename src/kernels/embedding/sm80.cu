// A thread per eight elements of a row, or per element where rows are not made of whole 16 bytes.
// Class cuda.embedding.exact: widening is exact and the scale rounds once, so there is one right
// answer.
#include <cuda_runtime.h>

#include "kernels/device.cuh"
#include "kernels/embedding/args.h"
#include "kernels/embedding/device.h"

namespace millrace::embedding {
namespace {

constexpr int kThreads = 128;

template <int kEach>
__global__ void __launch_bounds__(kThreads) embedding_kernel(Args a) {
  let_next_kernel_start();
  wait_for_previous_kernel();
  const long long row = blockIdx.x, id = a.ids[row];
  const long long i = (static_cast<long long>(blockIdx.y) * kThreads + threadIdx.x) * kEach;
  if (i >= a.n) return;
  float values[kEach] = {};
  if (id >= 0 && id < a.n_vocab) load_several(values, a.table, a.table_type, id * a.n + i);
  for (float& value : values) value *= a.scale;
  store_several(a.y, DType::f32, row * a.n + i, values);
}

}  // namespace

bool takes_sm80(const Args& a) {
  return a.table_type == DType::f32 || a.table_type == DType::f16 || a.table_type == DType::bf16;
}

int launch_sm80(const Args& a, void* stream, void*) {
  if (a.n_rows == 0) return cudaSuccess;
  const bool in_eights = a.n % 8 == 0 && are_aligned(a.table, a.y);
  const long long per_block = kThreads * (in_eights ? 8LL : 1LL);
  const dim3 grid(static_cast<unsigned>(a.n_rows),
                  static_cast<unsigned>((a.n + per_block - 1) / per_block));
  return overlapped_launch(in_eights ? embedding_kernel<8> : embedding_kernel<1>,
                           {grid, kThreads, 0}, stream, a);
}

}  // namespace millrace::embedding
