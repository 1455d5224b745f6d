#include "kernels/matmul/declared_tiles.h"

#include "kernels/matmul/device.h"
#include "kernels/matmul/tiles.h"

namespace millrace::matmul {

// As tiles_avx512.h and tiles_avx2.h have them, which are of one instruction set and stay in it.
namespace avx512_vnni {
const tiles16::TileKernel& kernel_of(DType type);
}
namespace avx2 {
const tiles16::TileKernel& kernel_of(DType type);
}

namespace {

// One row has a way of its own; more are taken in groups of as many as the registers hold.
TileShape shape_of(const Args& a, const tiles16::TileKernel& kernel) {
  if (a.n_rows < 2) return {.rows = 1};
  return {.rows = a.n_rows <= kernel.packed_rows ? kernel.max_packed_rows : kernel.max_rows};
}

}  // namespace

// The K-quants and float weights declare nothing yet.
TileShape declared_tiles(std::string_view variant, const Args& args, [[maybe_unused]] int n_units) {
#ifdef MILLRACE_CUDA
  if (variant == "sm80_rows") return tiles_sm80_rows(args, n_units);
  if (variant == "sm80_batch") return tiles_sm80_batch(args, n_units);
  if (variant == "sm80_tiles") return tiles_sm80_tiles(args, n_units);
#endif
  if (variant == "avx512_vnni") return shape_of(args, avx512_vnni::kernel_of(args.w_type));
  if (variant == "avx2") return shape_of(args, avx2::kernel_of(args.w_type));
  return {};
}

}  // namespace millrace::matmul
