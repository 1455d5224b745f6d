// How the K-quant products walk a matrix, the same for every ISA: a lane owns whole tiles of 16
// outputs; rows go in chunks whose activations stay in L2, so a tile is streamed once per chunk and
// its bits are taken apart once per few rows. What the walk needs of an ISA is a Kernel:
//   static void prepare(const quantize::Row&, long long k, char* side)
//   template <int kRows, int kTiles> static void rows(const KquantTile&)
// for kRows = 1 to kMaxRows and kTiles = 1 and kMaxTiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/kernel.h"
#include "kernels/matmul/args.h"
#include "kernels/matmul/fetch.h"
#include "kernels/matmul/pack_kquants.h"
#include "kernels/quantize/row.h"

namespace millrace::matmul {

// 64 rows of 3072 int8 are 200 KB: a share of L2 that leaves room for the tile.
inline constexpr long long kChunkRows = 64;

// Rows x one tile or a few. Row r's q8_row starts at x + r * x_stride, its side words at side + r *
// side_stride, its outputs at y + r * y_stride.
struct KquantTile {
  const unsigned char* w;
  const char* x;
  const char* side;
  float* y;
  long long k;
  long long w_stride;     // bytes of a tile
  long long x_stride;     // bytes
  long long side_stride;  // bytes
  long long y_stride;     // elements
  int live;               // outputs of the tiles that exist

  KquantTile from_row(long long r) const {
    KquantTile t = *this;
    t.x += r * x_stride;
    t.side += r * side_stride;
    t.y += r * y_stride;
    return t;
  }
};

// Where the first row has the block at hand.
struct RowsAt {
  const char *x, *scale, *side;

  void advance(int side_bytes) {
    x += quantize::kBlock;
    scale += 4;
    side += side_bytes;
  }
};

// What a kernel wants to know of a row beside its q8_row, 4 bytes per 16 or 32 k; each lane has its
// own copy of a chunk's, which is cheaper than a barrier.
constexpr long long kquant_side_bytes(long long k) {
  return (k / 16 * 4 + 63) / 64 * 64;
}
inline size_t kquant_workspace_bytes(const Args& a, int n_lanes) {
  return static_cast<size_t>(n_lanes * std::min(a.n_rows, kChunkRows) * kquant_side_bytes(a.k));
}

// In groups as even as they can be: 8 rows of at most 6 are 4 and 4.
template <class Kernel, int kTiles, size_t... kIndex>
void walk_rows(const KquantTile& tile, long long n_rows, std::index_sequence<kIndex...>) {
  using Call = void (*)(const KquantTile&);
  static constexpr Call kCalls[] = {Kernel::template rows<static_cast<int>(kIndex) + 1, kTiles>...};
  const long long n_groups = (n_rows + Kernel::kMaxRows - 1) / Kernel::kMaxRows;
  for (long long g = 0; g < n_groups; ++g) {
    const long long first = n_rows * g / n_groups, end = n_rows * (g + 1) / n_groups;
    if (n_rows > 1)
      fetch_share(tile.w + kTiles * tile.w_stride, kTiles * tile.w_stride, first, end, n_rows);
    kCalls[end - first - 1](tile.from_row(first));
  }
}

// One row takes tile after tile: one stream, fetched ahead.
template <class Kernel>
void walk_tiles(const Args& a, Share tiles, const KquantTile& chunk, long long n_rows) {
  for (long long t = tiles.begin; t < tiles.end;) {
    const bool wide = n_rows > 1 && tiles.end - t >= Kernel::kMaxTiles;
    const long long n_tiles = wide ? Kernel::kMaxTiles : 1;
    KquantTile call = chunk;
    call.w = static_cast<const unsigned char*>(a.w) + t * chunk.w_stride;
    call.y += t * kTile;
    call.live = static_cast<int>(std::min(n_tiles * kTile, a.n - t * kTile));
    constexpr auto kGroups = std::make_index_sequence<Kernel::kMaxRows>();
    if (wide)
      walk_rows<Kernel, Kernel::kMaxTiles>(call, n_rows, kGroups);
    else
      walk_rows<Kernel, 1>(call, n_rows, kGroups);
    t += n_tiles;
  }
}

template <class Kernel>
Status walk(const Args& a, Exec& exec) {
  const Share tiles = exec.share((a.n + kTile - 1) / kTile);
  const long long side_stride = kquant_side_bytes(a.k);
  char* side = reinterpret_cast<char*>(exec.workspace) +
               exec.lane * std::min(a.n_rows, kChunkRows) * side_stride;
  for (long long r0 = 0; r0 < a.n_rows; r0 += kChunkRows) {
    const long long n_rows = std::min(a.n_rows - r0, kChunkRows);
    for (long long r = 0; r < n_rows; ++r)
      Kernel::prepare(quantize::row_at(a.x, a.k, r0 + r), a.k, side + r * side_stride);
    const KquantTile chunk = {.w = nullptr,
                              .x = static_cast<const char*>(a.x) + r0 * quantize::row_bytes(a.k),
                              .side = side,
                              .y = static_cast<float*>(a.y) + r0 * a.n,
                              .k = a.k,
                              .w_stride = kquant_tile_bytes(a.w_type, a.k),
                              .x_stride = quantize::row_bytes(a.k),
                              .side_stride = side_stride,
                              .y_stride = a.n,
                              .live = 0};
    walk_tiles<Kernel>(a, tiles, chunk, n_rows);
  }
  return {};
}

}  // namespace millrace::matmul
