// A block per KV head and tile of up to 32 rows, a thread per eight dimensions of a row (one where
// heads are not made of whole 16 bytes). K pages hold tokens side by side, so for K neighbouring
// threads take neighbouring rows: those of a prefill go to neighbouring places and are stored as
// whole sectors. V pages hold dimensions side by side, so for V they take neighbouring dimensions.
// Class cuda.kv_store.round: the bytes of the reference.
#include <cuda_runtime.h>

#include "kernels/device.cuh"
#include "kernels/kv_store/args.h"
#include "kernels/kv_store/device.h"

namespace millrace::kv_store {
namespace {

constexpr int kThreads = 128;
constexpr int kMaxTile = 32;

// Where a row's K or V of this head goes: the page's block of the head, and the place.
struct Place {
  long long block;
  int place;
  bool stored;

  __device__ __forceinline__ Place(const Args& a, long long row, long long head) {
    const auto page_tokens = static_cast<int>(a.page_tokens);
    const int slot = row < a.n_rows ? a.slots[row] : -1;
    stored = slot >= 0 && slot / page_tokens < a.n_pages;
    place = slot % page_tokens;
    block = slot / page_tokens * a.page_stride + head * a.head_dim * a.page_tokens;
  }
};

template <int kEach>
__global__ void __launch_bounds__(kThreads) kv_store_kernel(Args a, int tile) {
  let_next_kernel_start();
  wait_for_previous_kernel();
  const long long row0 = static_cast<long long>(blockIdx.x) * tile, head = blockIdx.y;
  const auto dim = static_cast<int>(a.head_dim);
  const int parts = dim / kEach;  // of a head
  for (int i = threadIdx.x; i < tile * parts && a.what != Stored::values; i += kThreads) {
    const long long row = row0 + i % tile;
    const Place to(a, row, head);
    if (!to.stored) continue;
    const int d = i / tile * kEach;
    float x[kEach];
    load_several(x, a.k, a.x_type, row * a.x_stride + head * dim + d);
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const float one[1] = {x[j]};
      store_several(a.k_pages, a.kv_type, to.block + (d + j) * a.page_tokens + to.place, one);
    }
  }
  for (int i = threadIdx.x; i < tile * parts && a.what != Stored::keys; i += kThreads) {
    const long long row = row0 + i / parts;
    const Place to(a, row, head);
    if (!to.stored) continue;
    const int d = i % parts * kEach;
    float x[kEach];
    load_several(x, a.v, a.x_type, row * a.x_stride + head * dim + d);
    store_several(a.v_pages, a.kv_type, to.block + static_cast<long long>(to.place) * dim + d, x);
  }
}

}  // namespace

bool takes_sm80(const Args& a) {
  return a.n_kv_heads <= 65535;
}

int launch_sm80(const Args& a, void* stream, void*) {
  if (a.n_rows == 0) return cudaSuccess;
  const bool in_eights = a.head_dim % 8 == 0 && a.x_stride % 8 == 0 && a.page_stride % 8 == 0 &&
                         are_aligned(a.k, a.v, a.v_pages);
  int tile = 1;
  while (tile < kMaxTile && tile < a.n_rows) tile *= 2;
  const dim3 grid(static_cast<unsigned>((a.n_rows + tile - 1) / tile),
                  static_cast<unsigned>(a.n_kv_heads));
  return overlapped_launch(in_eights ? kv_store_kernel<8> : kv_store_kernel<1>, {grid, kThreads, 0},
                           stream, a, tile);
}

}  // namespace millrace::kv_store
