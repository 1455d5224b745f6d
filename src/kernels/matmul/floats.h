// How the products with float weights walk a matrix, the same for every ISA. One row streams its
// tiles once. More rows go in chunks of rows and of k, so that a few tiles' weights stay in L1 and
// the chunk's x in L2; a chain that continues in the next chunk of k waits in y, which holds its
// f32 exactly. What the walk needs of an ISA is a Kernel:
//   template <int kRows, int kTiles> static void block(const FloatBlock&)
// for kRows = kMaxRows, kMaxRows / 2, ... 1 and kTiles = kMaxTiles, 1.
#pragma once

#include <algorithm>

#include "kernels/kernel.h"
#include "kernels/matmul/args.h"
#include "kernels/matmul/fetch.h"
#include "kernels/matmul/lane_tiles.h"
#include "kernels/matmul/pack_floats.h"
#include "tensor/format.h"

namespace millrace::matmul {

// Rows x tiles over part of k.
struct FloatBlock {
  const unsigned char* w;  // at the part's first k, of the first tile
  const float* x;
  float* y;
  long long tile_bytes;
  long long x_stride, y_stride;  // elements
  long long n_k;
  int live;    // outputs of the tiles that exist
  bool first;  // chains begin at +0, else at y
};

// 256 k of two tiles are at most 32 KB, of 256 rows 256 KB.
inline constexpr long long kFloatChunkK = 256, kFloatChunkRows = 256;

template <class Kernel, int kTiles, int kRows = Kernel::kMaxRows>
void walk_float_rows(FloatBlock block, long long n_rows) {
  for (; n_rows >= kRows; n_rows -= kRows) {
    Kernel::template block<kRows, kTiles>(block);
    block.x += kRows * block.x_stride;
    block.y += kRows * block.y_stride;
  }
  if constexpr (kRows > 1)
    if (n_rows > 0) walk_float_rows<Kernel, kTiles, kRows / 2>(block, n_rows);
}

// All tiles of a lane over one chunk; `block` is at the matrix's first output.
template <class Kernel>
void walk_float_tiles(const Args& a, Share tiles, FloatBlock block, long long n_rows) {
  const auto* w = block.w;
  auto* y = block.y;
  for (long long t = tiles.begin; t < tiles.end;) {
    const bool wide = tiles.end - t >= Kernel::kMaxTiles;
    const long long n_tiles = wide ? Kernel::kMaxTiles : 1;
    block.w = w + t * block.tile_bytes;
    block.y = y + t * kFloatTile;
    block.live = static_cast<int>(std::min(n_tiles * kFloatTile, a.n - t * kFloatTile));
    if (wide)
      walk_float_rows<Kernel, Kernel::kMaxTiles>(block, n_rows);
    else
      walk_float_rows<Kernel, 1>(block, n_rows);
    t += n_tiles;
  }
}

template <class Kernel>
Status walk_floats(const Args& a, Exec& exec) {
  const Share tiles = tiles_of(exec, a.n, kFloatTile);
  const long long k_bytes = kFloatTile * format_of(a.w_type).block_bytes;
  const long long chunk_k = a.n_rows == 1 ? a.k : kFloatChunkK;
  for (long long r = 0; r < a.n_rows; r += kFloatChunkRows)
    for (long long i = 0; i < a.k; i += chunk_k) {
      const FloatBlock block = {.w = static_cast<const unsigned char*>(a.w) + i * k_bytes,
                                .x = static_cast<const float*>(a.x) + r * a.k + i,
                                .y = static_cast<float*>(a.y) + r * a.n,
                                .tile_bytes = a.k * k_bytes,
                                .x_stride = a.k,
                                .y_stride = a.n,
                                .n_k = std::min(chunk_k, a.k - i),
                                .live = 0,
                                .first = i == 0};
      walk_float_tiles<Kernel>(a, tiles, block, std::min(kFloatChunkRows, a.n_rows - r));
    }
  return {};
}

}  // namespace millrace::matmul
