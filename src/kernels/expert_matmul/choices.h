// The choices of a batch, expert by expert. Rows that chose the same expert are gathered and
// multiplied together, as matmul multiplies many rows: the expert's weights are read and unpacked
// once for all of them. One row is multiplied where it lies. Lanes split an expert's outputs and
// share nothing else.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/expert_matmul/args.h"
#include "kernels/kernel.h"
#include "kernels/matmul/args.h"
#include "kernels/quantize/row.h"
#include "tensor/format.h"

namespace millrace::expert_matmul {

inline constexpr long long kMaxRows = 128;  // gathered at once
inline constexpr long long kOutputs = 16;   // of a tile, in all of matmul's layouts

// The stack as one matrix, without rows.
inline matmul::Args stack_of(const Args& a) {
  return {.w = a.w,
          .x = nullptr,
          .y = nullptr,
          .n_rows = 1,
          .n = a.n_experts * a.n,
          .k = a.k,
          .w_type = a.w_type,
          .x_type = a.x_type,
          .y_type = DType::f32};
}

inline long long x_bytes(const Args& a) {
  return a.x_type == DType::q8_row ? quantize::row_bytes(a.k) : 4 * a.k;
}

inline const std::byte* x_of(const Args& a, long long choice) {
  const long long row = a.x_per_choice ? choice : choice / a.n_used;
  return static_cast<const std::byte*>(a.x) + row * x_bytes(a);
}

// A product with some tiles of one expert, but for what it multiplies.
inline matmul::Args tiles_of(const Args& a, long long n_rows, long long n_tiles) {
  matmul::Args m = stack_of(a);
  m.n_rows = n_rows;
  m.n = n_tiles * kOutputs;
  return m;
}

// One choice alone, over plain weights.
inline matmul::Args product_of(const Args& a, long long choice) {
  matmul::Args m = tiles_of(a, 1, a.n / kOutputs);
  m.w = static_cast<const std::byte*>(a.w) +
        static_cast<size_t>(a.experts[choice]) * bytes_of(a.w_type, a.n * a.k);
  m.x = x_of(a, choice);
  m.y = a.y + choice * a.n;
  return m;
}

// What a lane needs for two rows and more, in bytes from the beginning of its part of the
// workspace.
struct LaneSpace {
  long long starts, order, x, y, product;

  static LaneSpace of(const Args& a, long long n_tiles) {
    const auto after = [](long long at, long long bytes) { return (at + bytes + 63) / 64 * 64; };
    const long long n_choices = a.n_rows * a.n_used, n_rows = std::min(n_choices, kMaxRows);
    LaneSpace s{};
    s.order = after(s.starts, 4 * (a.n_experts + 1));
    s.x = after(s.order, 4 * n_choices);
    s.y = after(s.x, n_rows * x_bytes(a));
    s.product = after(s.y, 4 * n_rows * n_tiles * kOutputs);
    return s;
  }
};

using Matmul = Status (*)(const matmul::Args&, Exec&);

// One lane's tiles of every expert.
class LaneProducts {
 public:
  LaneProducts(const Args& a, const Exec& exec, const Layout* layout, Matmul matmul)
      : a_(a), matmul_(matmul) {
    const Share outputs = exec.columns(a.n);
    tiles_ = {outputs.begin / kOutputs, outputs.end / kOutputs};
    const matmul::Args tile = tiles_of(a, 1, 1);
    tile_bytes_ = static_cast<long long>(layout == nullptr ? bytes_of(a.w_type, kOutputs * a.k)
                                                           : layout->bytes(&tile));
    if (a.n_rows < 2) return;
    const size_t lane_bytes = exec.workspace_bytes / static_cast<size_t>(exec.n_lanes) / 64 * 64;
    std::byte* mine = exec.workspace + static_cast<size_t>(exec.lane) * lane_bytes;
    const LaneSpace at = LaneSpace::of(a, tiles_.end - tiles_.begin);
    starts_ = reinterpret_cast<int*>(mine + at.starts);
    order_ = reinterpret_cast<int*>(mine + at.order);
    x_ = mine + at.x;
    y_ = reinterpret_cast<float*>(mine + at.y);
    alone_ = {.workspace = mine + at.product,
              .workspace_bytes = lane_bytes - static_cast<size_t>(at.product)};
  }

  Status run() {
    if (tiles_.begin == tiles_.end) return {};
    if (a_.n_rows < 2) {
      for (int choice = 0; choice < a_.n_rows * a_.n_used; ++choice)
        MILLRACE_TRY(multiply_one(choice));
      return {};
    }
    sort();
    for (long long e = 0; e < a_.n_experts; ++e)
      for (long long i = starts_[e], n; i < starts_[e + 1]; i += n) {
        n = std::min<long long>(starts_[e + 1] - i, kMaxRows);
        MILLRACE_TRY(n == 1 ? multiply_one(order_[i]) : multiply_several(order_ + i, n));
      }
    return {};
  }

 private:
  const std::byte* w_of(int choice) const {
    const long long tile = a_.experts[choice] * (a_.n / kOutputs) + tiles_.begin;
    return static_cast<const std::byte*>(a_.w) + tile * tile_bytes_;
  }
  float* y_of(int choice) const { return a_.y + choice * a_.n + tiles_.begin * kOutputs; }

  // The choices in the order of their experts: counted, then put in place.
  void sort() {
    const long long n_choices = a_.n_rows * a_.n_used;
    std::fill_n(starts_, a_.n_experts + 1, 0);
    for (long long i = 0; i < n_choices; ++i) ++starts_[a_.experts[i] + 1];
    for (long long e = 0; e < a_.n_experts; ++e) starts_[e + 1] += starts_[e];
    for (long long i = 0; i < n_choices; ++i)
      order_[starts_[a_.experts[i]]++] = static_cast<int>(i);
    // Each start has moved to its expert's end, the next one's start.
    std::copy_backward(starts_, starts_ + a_.n_experts, starts_ + a_.n_experts + 1);
    starts_[0] = 0;
  }

  Status multiply_one(int choice) {
    matmul::Args m = tiles_of(a_, 1, tiles_.end - tiles_.begin);
    m.w = w_of(choice);
    m.x = x_of(a_, choice);
    m.y = y_of(choice);
    return matmul_(m, alone_);
  }

  Status multiply_several(const int* choices, long long n) {
    const auto row_bytes = static_cast<size_t>(x_bytes(a_));
    for (long long i = 0; i < n; ++i)
      std::memcpy(x_ + static_cast<size_t>(i) * row_bytes, x_of(a_, choices[i]), row_bytes);
    matmul::Args m = tiles_of(a_, n, tiles_.end - tiles_.begin);
    m.w = w_of(choices[0]);
    m.x = x_;
    m.y = y_;
    MILLRACE_TRY(matmul_(m, alone_));
    for (long long i = 0; i < n; ++i)
      std::memcpy(y_of(choices[i]), y_ + i * m.n, static_cast<size_t>(4 * m.n));
    return {};
  }

  const Args& a_;
  Matmul matmul_;
  Share tiles_{};
  long long tile_bytes_;
  int* starts_ = nullptr;  // where an expert's choices begin in order_
  int* order_ = nullptr;
  std::byte* x_ = nullptr;
  float* y_ = nullptr;
  Exec alone_;
};

}  // namespace millrace::expert_matmul
