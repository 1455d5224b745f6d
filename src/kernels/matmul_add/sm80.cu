// One to eight rows on any device since sm_80: the product of rows_product.cuh, and the sum in the
// place of its store.
#include <cuda_runtime.h>

#include "kernels/matmul_add/args.h"
#include "kernels/matmul_add/device.h"
#include "kernels/rows_product.cuh"

namespace millrace::matmul_add {
namespace {

namespace rp = rows_product;

template <class W>
__global__ void __launch_bounds__(32 * rp::max_warps(1), 1)
    matmul_add_kernel(const __grid_constant__ Args a, rp::Shape shape) {
  extern __shared__ __align__(16) unsigned char shared[];
  let_next_kernel_start();
  const rp::Memory<W, 1> memory(shared, shape);
  const long long tile = blockIdx.x;
  const int i = static_cast<int>(threadIdx.x), n_sums = shape.n_rows * matmul::kTileM;
  const auto place = [&](int j) {
    return j / matmul::kTileM * a.n + tile * matmul::kTileM + j % matmul::kTileM;
  };
  const auto is_output = [&](int j) {
    return j < n_sums && tile * matmul::kTileM + j % matmul::kTileM < a.n;
  };
  float added = 0;
  const unsigned char* w[1] = {rp::tile_at<W>(a.w, shape, tile)};
  rp::run<W, 1>(
      w, shape, memory,
      [&] {
        wait_for_previous_kernel();
        if (is_output(i)) added = __ldcg(a.a + place(i));
      },
      [&](int segment, int live) { rp::stage_plain(memory.x, a.x, a.k, shape, segment, live); });
  __syncthreads();
  for (int j = i; j < n_sums; j += static_cast<int>(blockDim.x)) {
    if (!is_output(j)) continue;
    if (j != i) added = a.a[place(j)];
    a.y[place(j)] = added + memory.folded(shape, 0, j / matmul::kTileM, j % matmul::kTileM);
  }
}

}  // namespace

bool takes_sm80(const Args& a) {
  return a.n_rows >= 1 && a.n_rows <= rp::kRows && device_weights::takes(a.w_type, a.k) &&
         are_aligned(a.x) && rp::fits(rp::shared_bytes<1>(a.w_type, rp::shape_of(a.n_rows, a.k)));
}

int launch_sm80(const Args& a, void* stream, void*) {
  const rp::Shape shape = rp::shape_of(a.n_rows, a.k);
  const auto n_tiles = static_cast<unsigned>((a.n + matmul::kTileM - 1) / matmul::kTileM);
  return device_weights::with_format(a.w_type, [&](auto format) {
    return rp::launch(matmul_add_kernel<decltype(format)>,
                      {.grid = dim3(n_tiles),
                       .n_threads = static_cast<unsigned>(32 * rp::warps_of(shape, 1)),
                       .shared_bytes = rp::shared_bytes<1>(a.w_type, shape)},
                      stream, a, shape);
  });
}

}  // namespace millrace::matmul_add
