// The way through a product whose weight is in tiles of 16 outputs (layouts tiles16 and tiles16_k),
// the same for every instruction set.
// A few rows are multiplied with the packed bytes as they stream past. Many rows are taken in
// panels that stay in L2; for every few tiles a run of blocks is expanded to whole bytes (which
// stay in L1) and multiplied with one group of rows after the other. What an instruction set gives
// is a TileKernel per format; calls through it are several hundred instructions each.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/check.h"
#include "kernels/kernel.h"
#include "kernels/matmul/args.h"
#include "kernels/matmul/pack.h"
#include "kernels/quantize/row.h"
#include "tensor/format.h"

namespace millrace::matmul::tiles16 {

inline constexpr int kGroups = quantize::kBlock / 4;  // of four k

// A few rows as a kernel reads them: row r is at each pointer plus r times its stride (in bytes).
struct Rows {
  const std::byte* q;  // of the rows themselves, or widened to int16 by `prepare`
  long long q_stride;
  const std::byte* dx;  // f32 per block
  long long dx_stride;
  // Per block a word that `prepare` made of dx and xsum: what is added to the integer dot, as i32,
  // or what multiplies the minimum, as f32. Two words where a block has two integer dots.
  const std::byte* extra;
  long long extra_stride;
};

// Bytes that are wanted soon, asked for a few lines with each block.
struct Ahead {
  const std::byte *at = nullptr, *end = nullptr;
  int n_lines = 0;

  [[gnu::always_inline]] void fetch() {
    for (int i = 0; i < n_lines && at < end; ++i, at += 64) __builtin_prefetch(at, 0, 2);
  }
};

// One register block: some rows times some tiles over n_blocks blocks.
struct Product {
  const std::byte*
      w;  // expanded: block b of tile t at (b * n_tiles + t) * expanded_bytes; else packed
  Rows x = {};
  float* y = nullptr;
  long long y_stride = 0;  // in elements
  long long n_blocks;
  int n_live;  // outputs of these tiles that exist
  bool first;  // the sums begin at 0, else at what y holds
  Ahead ahead = {};
};

// A one-row product reads kStreams runs of tiles at once: one stream a core leaves a fifth of the
// memory's bandwidth unused. Run i begins at tile first[i]; all have n_each tiles, and the first
// n_more of them one more.
inline constexpr int kStreams = 4;
struct Streams {
  long long first[kStreams];
  long long n_each;
  int n_more;
};
constexpr Streams streams_of(long long tile, long long tile_end) {
  Streams out{{}, (tile_end - tile) / kStreams, static_cast<int>((tile_end - tile) % kStreams)};
  for (int i = 0; i < kStreams; ++i) {
    out.first[i] = tile;
    tile += out.n_each + (i < out.n_more ? 1 : 0);
  }
  return out;
}

// Calls each(n, streams, i) for the i-th tiles of all streams, n of them (an integral constant).
template <class Each>
void for_each_of_streams(long long tile, long long tile_end, Each each) {
  const Streams streams = streams_of(tile, tile_end);
  for (long long i = 0; i < streams.n_each; ++i)
    each(std::integral_constant<int, kStreams>(), streams, i);
  if (streams.n_more == 1) each(std::integral_constant<int, 1>(), streams, streams.n_each);
  if (streams.n_more == 2) each(std::integral_constant<int, 2>(), streams, streams.n_each);
  if (streams.n_more == 3) each(std::integral_constant<int, 3>(), streams, streams.n_each);
}

// Blocks [first, first + n) of a tile's k / 32.
struct Run {
  long long k, first, n;
};

template <class T>
[[gnu::always_inline]] inline T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Where R rows stand. Three rows share a base: base, base + stride and base + 2 * stride are all
// addresses of x86.
template <int R>
struct At {
  static constexpr int kBases = (R + 2) / 3;
  const std::byte* base[kBases];
  long long stride;

  [[gnu::always_inline]] At(const std::byte* first, long long row_stride) : stride(row_stride) {
#pragma GCC unroll 4
    for (int i = 0; i < kBases; ++i) base[i] = first + 3 * i * row_stride;
  }
  [[gnu::always_inline]] const std::byte* operator[](int r) const {
    return base[r / 3] + r % 3 * stride;
  }
  [[gnu::always_inline]] void advance(int bytes) {
#pragma GCC unroll 4
    for (int i = 0; i < kBases; ++i) base[i] += bytes;
  }
};

struct TileKernel {
  long long (*tile_bytes)(long long k);  // of a packed tile
  int unit_blocks;                       // a run is whole units: 1 block, or a superblock's 8
  int wide_q_bytes;    // of a row's block in what `prepare` writes; 0: rows are read as they are
  int extra_bytes;     // of a row's block
  int expanded_bytes;  // of a tile's block
  int max_rows, max_tiles;  // of one multiply
  int chunk_bytes;          // of expanded blocks that stay in L1, with room for what passes them
  int panel_bytes;          // of rows that stay in L2, likewise
  // Up to packed_rows (0: never), expanding a tile costs more than decoding it for every group.
  int packed_rows;
  int max_packed_rows, max_packed_tiles;  // of one multiply_packed
  void (*one_row)(const Args& args, long long tile, long long tile_end);
  // Of rows [first, first + n): the extra words, and q widened where the kernel wants that.
  void (*prepare)(const Args& args, long long first, long long n, std::byte* extra,
                  std::byte* wide);
  void (*expand)(const std::byte* tile, const Run& run, std::byte* out, long long out_stride);
  void (*multiply)(const Product& product, int n_rows, int n_tiles);
  void (*multiply_packed)(const Product& product, int n_rows, int n_tiles);
};

// An instruction set's kernels, one a format.
struct TypedKernel {
  DType type;
  TileKernel kernel;
};
inline const TileKernel& kernel_in(std::span<const TypedKernel> kernels, DType type) {
  for (const TypedKernel& typed : kernels)
    if (typed.type == type) return typed.kernel;
  MILLRACE_CHECK(false, "no tile kernel multiplies {}", name_of(type));
  return kernels[0].kernel;
}

size_t workspace_bytes(const Args& args, int n_lanes, const TileKernel& kernel);
Status run(const Args& args, Exec& exec, const TileKernel& kernel);

}  // namespace millrace::matmul::tiles16
