#include "kernels/matmul/tiles.h"

#include <algorithm>

#include "kernels/matmul/lane_tiles.h"
#include "kernels/quantize/row.h"

namespace millrace::matmul::tiles16 {
namespace {

constexpr long long kLeastPanelRows = 24;

long long ceil_div(long long a, long long b) {
  return (a + b - 1) / b;
}
long long round_up(long long a, long long unit) {
  return ceil_div(a, unit) * unit;
}

// Some items in n parts as even as can be: the first `n_larger` have one more than `size`.
struct Parts {
  long long n, size, n_larger;
  long long part(long long i) const { return size + (i < n_larger ? 1 : 0); }
};
Parts parts_of_at_most(long long n_items, long long limit) {
  const long long n = std::max(ceil_div(n_items, limit), 1LL);
  return {n, n_items / n, n_items % n};
}

struct Plan {
  long long n_blocks;  // of k
  long long tile_bytes;
  Parts panels, chunks;
  long long extra_stride, wide_stride;             // bytes of a row
  long long extra_bytes, wide_bytes, chunk_bytes;  // of a lane
  bool packed;                                     // few rows: no chunks
  long long lane_bytes() const { return extra_bytes + wide_bytes + chunk_bytes; }
};

Plan plan_of(const Args& a, const TileKernel& kernel) {
  Plan p{};
  p.n_blocks = a.k / quantize::kBlock;
  p.tile_bytes = kernel.tile_bytes(a.k);
  p.packed = a.n_rows <= kernel.packed_rows;
  p.extra_stride = kernel.extra_bytes * p.n_blocks;
  p.wide_stride = p.n_blocks * kernel.wide_q_bytes;
  // What of a row is read again and again: of a widened one the scales alone beside that.
  const long long own_bytes = p.wide_stride == 0 ? quantize::row_bytes(a.k) : 4 * p.n_blocks;
  const long long row_bytes = own_bytes + p.extra_stride + p.wide_stride;
  const long long most_rows = std::max(kernel.panel_bytes / row_bytes, kLeastPanelRows);
  p.panels = parts_of_at_most(a.n_rows, most_rows);
  const long long unit_bytes = kernel.unit_blocks * kernel.max_tiles * kernel.expanded_bytes;
  p.chunks = parts_of_at_most(p.n_blocks / kernel.unit_blocks,
                              std::max(kernel.chunk_bytes / unit_bytes, 1LL));
  const long long panel_rows = std::min(a.n_rows, most_rows);  // not a part's: it grows with n_rows
  p.extra_bytes = round_up(panel_rows * p.extra_stride, 64);
  p.wide_bytes = round_up(panel_rows * p.wide_stride, 64);
  p.chunk_bytes = p.packed ? 0 : p.chunks.part(0) * unit_bytes;
  return p;
}

// One lane's work on one panel of rows.
struct Panel {
  const Args& a;
  const TileKernel& kernel;
  const Plan& plan;
  std::byte* extra;
  std::byte* wide;
  std::byte* expanded;
  long long first, n_rows;

  // All of the panel's, from a block on.
  Rows rows(long long block) const {
    const quantize::Row x = quantize::row_at(a.x, a.k, first);
    Rows out{.q = reinterpret_cast<const std::byte*>(x.q + block * quantize::kBlock),
             .q_stride = quantize::row_bytes(a.k),
             .dx = reinterpret_cast<const std::byte*>(x.scale + block),
             .dx_stride = quantize::row_bytes(a.k),
             .extra = extra + kernel.extra_bytes * block,
             .extra_stride = plan.extra_stride};
    if (kernel.wide_q_bytes != 0) {
      out.q = wide + block * kernel.wide_q_bytes;
      out.q_stride = plan.wide_stride;
    }
    return out;
  }

  const std::byte* packed_at(long long tile) const {
    return static_cast<const std::byte*>(a.w) + tile * plan.tile_bytes;
  }

  // Calls multiply(product, rows) for each group of at most max_rows rows.
  template <class Multiply>
  void for_each_group(long long tile, long long block, int max_rows, Product p,
                      Multiply multiply) const {
    const Parts groups = parts_of_at_most(n_rows, max_rows);
    p.y = static_cast<float*>(a.y) + first * a.n + tile * kOutputs;
    p.y_stride = a.n;
    p.x = rows(block);
    for (long long g = 0; g < groups.n; ++g) {
      const long long n = groups.part(g);
      multiply(p, static_cast<int>(n));
      p.x.q += n * p.x.q_stride;
      p.x.dx += n * p.x.dx_stride;
      p.x.extra += n * p.x.extra_stride;
      p.y += n * a.n;
    }
  }

  int n_live(long long tile, long long n) const {
    return static_cast<int>(std::min(n * kOutputs, a.n - tile * kOutputs));
  }

  // While some tiles are multiplied, the next ones' bytes are fetched: each group of rows asks for
  // a share of them, a few lines with each block.
  void multiply_packed(long long tile, long long tile_end) const {
    const long long n_groups = ceil_div(n_rows, kernel.max_packed_rows);
    for (; tile < tile_end; tile += kernel.max_packed_tiles) {
      const long long n = std::min<long long>(kernel.max_packed_tiles, tile_end - tile);
      Ahead ahead = packed_ahead(tile + n, tile_end);
      const long long n_lines = ceil_div(ahead.end - ahead.at, 64);
      ahead.n_lines = static_cast<int>(ceil_div(n_lines, n_groups * plan.n_blocks));
      const Product p{.w = packed_at(tile),
                      .n_blocks = plan.n_blocks,
                      .n_live = n_live(tile, n),
                      .first = true};
      for_each_group(tile, 0, kernel.max_packed_rows, p, [&](Product product, int n_group) {
        product.ahead = ahead;
        ahead.at += std::min<long long>(64 * ahead.n_lines * plan.n_blocks, ahead.end - ahead.at);
        kernel.multiply_packed(product, n_group, static_cast<int>(n));
      });
    }
  }

  Ahead packed_ahead(long long tile, long long tile_end) const {
    const long long n = std::min<long long>(kernel.max_packed_tiles, tile_end - tile);
    return {.at = packed_at(tile), .end = packed_at(tile + n)};
  }

  // Tiles [tile, tile + n) over blocks [block, block + n_blocks). While one group after the other
  // is multiplied, the next tiles' bytes are fetched, a few lines each time.
  void multiply_chunk(long long tile, long long n, const Run& run, const std::byte* end) const {
    for (long long t = 0; t < n; ++t)
      kernel.expand(packed_at(tile + t), run, expanded + t * kernel.expanded_bytes,
                    n * kernel.expanded_bytes);
    const Product p{
        .w = expanded, .n_blocks = run.n, .n_live = n_live(tile, n), .first = run.first == 0};
    const long long bytes = n * plan.tile_bytes * run.n / plan.n_blocks;
    const std::byte* ahead = packed_at(tile + n) + n * plan.tile_bytes * run.first / plan.n_blocks;
    const std::byte* stop = std::min(ahead + bytes, end);
    const long long step = round_up(bytes * kernel.max_rows / n_rows, 64);
    const auto multiply_group = [&](const Product& product, int n_group_rows) {
      for (const std::byte* to = std::min(ahead + step, stop); ahead < to; ahead += 64)
        __builtin_prefetch(ahead, 0, 2);
      kernel.multiply(product, n_group_rows, static_cast<int>(n));
    };
    for_each_group(tile, run.first, kernel.max_rows, p, multiply_group);
  }

  void multiply_expanded(long long tile, long long tile_end) const {
    const std::byte* end = packed_at(tile_end);
    for (; tile < tile_end; tile += kernel.max_tiles) {
      const long long n = std::min<long long>(kernel.max_tiles, tile_end - tile);
      Run run{.k = a.k, .first = 0, .n = 0};
      for (long long c = 0; c < plan.chunks.n; ++c, run.first += run.n) {
        run.n = plan.chunks.part(c) * kernel.unit_blocks;
        multiply_chunk(tile, n, run, end);
      }
    }
  }
};

}  // namespace

size_t workspace_bytes(const Args& a, int n_lanes, const TileKernel& kernel) {
  return a.n_rows < 2 ? 0 : static_cast<size_t>(plan_of(a, kernel).lane_bytes() * n_lanes);
}

Status run(const Args& a, Exec& exec, const TileKernel& kernel) {
  const Share tiles = tiles_of(exec, a.n, kOutputs);
  if (a.n_rows == 1) kernel.one_row(a, tiles.begin, tiles.end);
  if (a.n_rows < 2) return {};
  const Plan plan = plan_of(a, kernel);
  std::byte* extra = exec.workspace + exec.lane * plan.lane_bytes();
  std::byte* wide = extra + plan.extra_bytes;
  for (long long i = 0, first = 0; i < plan.panels.n; first += plan.panels.part(i++)) {
    const Panel panel{
        a, kernel, plan, extra, wide, wide + plan.wide_bytes, first, plan.panels.part(i)};
    kernel.prepare(a, first, panel.n_rows, extra, wide);
    if (plan.packed)
      panel.multiply_packed(tiles.begin, tiles.end);
    else
      panel.multiply_expanded(tiles.begin, tiles.end);
  }
  return {};
}

}  // namespace millrace::matmul::tiles16
