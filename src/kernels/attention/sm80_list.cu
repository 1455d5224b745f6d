// The launch of list.cuh: as many blocks as the list has shares, one kernel for decode and prefill.
#include <cuda_runtime.h>

#include "kernels/attention/args.h"
#include "kernels/attention/device.h"
#include "kernels/attention/list.cuh"
#include "kernels/attention/list.h"
#include "kernels/device.cuh"

namespace millrace::attention {
namespace {

// 34 MB at head_dim 128. With two query heads to each of eight KV heads a million tokens of decodes
// can be cut anywhere.
constexpr long long kRecords = 1 << 16;

// Blocks whose registers a multiprocessor has room for: with one column a block leaves half of them
// to the kernels before and after it.
constexpr int blocks_of(int dim, int columns) {
  return dim < 80 || (columns == 1 && dim <= 128) ? 2 : 1;
}

template <int kDim, int kMaxColumns>
__global__ void __launch_bounds__(Layout<kDim, kMaxColumns>::kThreads, blocks_of(kDim, kMaxColumns))
    list_kernel(const __grid_constant__ Args a, void* workspace, bool aliased) {
  let_next_kernel_start();
  Attend<kDim, kMaxColumns>(a, workspace, aliased).walk();
}

struct Kernel {
  void (*run)(const Args, void*, bool);
  int n_threads;
  int bytes, aliased_bytes;  // of shared memory
};

template <int kDim, int kMaxColumns>
Kernel kernel_of() {
  using L = Layout<kDim, kMaxColumns>;
  return {list_kernel<kDim, kMaxColumns>, L::kThreads, L::kBytes, L::kAliasedBytes};
}

Kernel kernel_for(long long head_dim, bool one_column) {
  switch (head_dim) {
    case 64:
      return one_column ? kernel_of<64, 1>() : kernel_of<64, 4>();
    case 80:
      return kernel_of<80, 4>();
    case 96:
      return kernel_of<96, 4>();
    case 128:
      return one_column ? kernel_of<128, 1>() : kernel_of<128, 4>();
    default:
      return kernel_of<256, 4>();
  }
}

bool has_kernel(long long head_dim) {
  return head_dim == 64 || head_dim == 80 || head_dim == 96 || head_dim == 128 || head_dim == 256;
}

// The shared memory to launch with, which this allows: as much as the kernel wants, or what it can
// do with; 0 where the device has less.
int settle_shared(const Kernel& kernel, int* bytes) {
  int device = 0, most = 0;
  if (cudaError_t e = cudaGetDevice(&device); e != cudaSuccess) return e;
  if (cudaError_t e =
          cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
      e != cudaSuccess)
    return e;
  *bytes = kernel.bytes <= most           ? kernel.bytes
           : kernel.aliased_bytes <= most ? kernel.aliased_bytes
                                          : 0;
  if (*bytes == 0) return cudaSuccess;
  return cudaFuncSetAttribute(kernel.run, cudaFuncAttributeMaxDynamicSharedMemorySize, *bytes);
}

}  // namespace

bool takes_sm80_list(const Args& a) {
  return a.work.n_shares > 0 && a.kv_type == DType::bf16 && a.q_type == DType::bf16 &&
         has_kernel(a.head_dim) && a.q_stride % 8 == 0 && a.n_heads / a.n_kv_heads <= kTileVectors;
}

size_t sm80_list_workspace_bytes(const Args& a, int) {
  return static_cast<size_t>(a.work.n_records) * (8 + 4 * static_cast<size_t>(a.head_dim));
}

int sm80_list_work(long long head_dim, Spread* work) {
  if (!has_kernel(head_dim)) return cudaSuccess;
  const Kernel kernel = kernel_for(head_dim, false);
  int bytes = 0, device = 0, n_sms = 0, per_sm = 0;
  if (int e = settle_shared(kernel, &bytes); e != cudaSuccess || bytes == 0) return e;
  if (cudaError_t e = cudaGetDevice(&device); e != cudaSuccess) return e;
  if (cudaError_t e = cudaDeviceGetAttribute(&n_sms, cudaDevAttrMultiProcessorCount, device);
      e != cudaSuccess)
    return e;
  if (cudaError_t e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
          &per_sm, kernel.run, kernel.n_threads, static_cast<size_t>(bytes));
      e != cudaSuccess)
    return e;
  work->n_shares = n_sms * max(per_sm, 1);
  work->n_records = kRecords;
  return cudaSuccess;
}

int launch_sm80_list(const Args& a, void* stream, void* workspace) {
  if (a.n_rows == 0 || a.n_heads == 0) return cudaSuccess;
  if (a.work.list == nullptr) return cudaErrorInvalidValue;
  const Kernel kernel = kernel_for(a.head_dim, has_one_column(a.n_rows, a.n_heads / a.n_kv_heads));
  int bytes = 0;
  if (int e = settle_shared(kernel, &bytes); e != cudaSuccess) return e;
  if (bytes == 0) return cudaErrorInvalidConfiguration;
  const LaunchShape shape = {.grid = dim3(static_cast<unsigned>(a.work.n_shares)),
                             .n_threads = static_cast<unsigned>(kernel.n_threads),
                             .shared_bytes = static_cast<size_t>(bytes),
                             .all_shared = true};
  return overlapped_launch(kernel.run, shape, stream, a, workspace, bytes == kernel.aliased_bytes);
}

}  // namespace millrace::attention
