// One to eight rows on any device since sm_80: a block owns a tile of 16 outputs of gate and the
// same of up, and norms the rows for itself. See rows_product.cuh.
#include <cuda_runtime.h>

#include "base/math_cuda.cuh"
#include "kernels/gated_input/args.h"
#include "kernels/gated_input/device.h"
#include "kernels/rows_product.cuh"

namespace millrace::gated_input {
namespace {

namespace rp = rows_product;

constexpr int kTiles = 2;  // gate and up

__device__ __forceinline__ float rounded(float value) {
  return widen_bf16(bf16_bits(value));
}

template <class W>
__global__ void __launch_bounds__(32 * rp::max_warps(kTiles), 1)
    gated_input_kernel(const __grid_constant__ Args a, rp::Shape shape) {
  extern __shared__ __align__(16) unsigned char shared[];
  let_next_kernel_start();
  const int warp = threadIdx.x >> 5;
  const rp::Norm norm = {a.x, a.norm, a.k, a.eps};
  const rp::Memory<W, kTiles> memory(shared, shape);
  auto* rows = reinterpret_cast<float*>(shared + memory.bytes(shape));
  const unsigned char* w[kTiles] = {rp::tile_at<W>(a.gate, shape, blockIdx.x),
                                    rp::tile_at<W>(a.up, shape, blockIdx.x)};
  float4 first_weights;
  rp::run<W, kTiles>(
      w, shape, memory,
      [&] {
        first_weights = rp::norm_weights(norm, warp);
        wait_for_previous_kernel();
        rp::begin_norm(rows, norm, shape);
      },
      [&](int segment, int live) {
        const float4 weights = segment == warp ? first_weights : rp::norm_weights(norm, segment);
        rp::stage_norm(memory.x, rows, norm, weights, shape, segment, live);
      });
  __syncthreads();
  for (int i = threadIdx.x; i < shape.n_rows * matmul::kTileM; i += blockDim.x) {
    const int r = i / matmul::kTileM, o = i % matmul::kTileM;
    const long long output = static_cast<long long>(blockIdx.x) * matmul::kTileM + o;
    if (output >= a.n) continue;
    const float gate = rounded(memory.folded(shape, 0, r, o));
    const float up = rounded(memory.folded(shape, 1, r, o));
    static_cast<unsigned short*>(a.y)[r * a.n + output] = bf16_bits(math::cuda::silu(gate) * up);
  }
}

size_t shared_bytes(const Args& a, const rp::Shape& s) {
  return rp::shared_bytes<kTiles>(a.w_type, s) + rp::norm_bytes(s);
}

}  // namespace

bool takes_sm80(const Args& a) {
  return a.n_rows >= 1 && a.n_rows <= rp::kRows && device_weights::takes(a.w_type, a.k) &&
         are_aligned(a.x, a.norm) && rp::fits(shared_bytes(a, rp::shape_of(a.n_rows, a.k)));
}

int launch_sm80(const Args& a, void* stream, void*) {
  const rp::Shape shape = rp::shape_of(a.n_rows, a.k);
  const auto n_blocks = static_cast<unsigned>((a.n + matmul::kTileM - 1) / matmul::kTileM);
  return device_weights::with_format(a.w_type, [&](auto format) {
    return rp::launch(gated_input_kernel<decltype(format)>,
                      {.grid = dim3(n_blocks),
                       .n_threads = static_cast<unsigned>(32 * rp::warps_of(shape, kTiles)),
                       .shared_bytes = shared_bytes(a, shape)},
                      stream, a, shape);
  });
}

}  // namespace millrace::gated_input
