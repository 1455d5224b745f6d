// Tails of tiles and segments, more segments than a block has warps, and the MLP of a Qwen3-0.6B
// layer.
#include <fmt/format.h>

#include "kernels/gated_input/op.h"
#include "kernels/matmul/args.h"
#include "kernels/rmsnorm/args.h"
#include "kernels/silu_mul/args.h"

namespace millrace::gated_input {
namespace {

FusedCase make_case(DType type, long long n_rows, long long n, long long least_k) {
  const long long k = whole_k(type, least_k);
  const DType bf16 = DType::bf16;
  FusedCase c{.name = fmt::format("{}_{}x{}x{}", name_of(type), n_rows, n, k)};
  const int x = c.input("x", DType::f32, n_rows * k), norm = c.input("norm", DType::f32, k);
  const int gate = c.weight("gate", type, n * k), up = c.weight("up", type, n * k);
  const int h = c.made("h", bf16, n_rows * k);
  const int gates = c.made("gates", bf16, n_rows * n), ups = c.made("ups", bf16, n_rows * n);
  const int y = c.made("y", bf16, n_rows * n, true);
  c.weights = {-1, gate, up, -1};
  c.bind = [=](std::span<void* const> port, std::span<ArgsBox> plain) {
    const auto at = [&](int i) { return port[static_cast<size_t>(i)]; };
    put_args(plain[0], rmsnorm::Args{.x = at(x),
                                     .weight = static_cast<const float*>(at(norm)),
                                     .y = at(h),
                                     .n_rows = n_rows,
                                     .n_groups = 1,
                                     .n = k,
                                     .eps = 1e-6f,
                                     .x_type = DType::f32,
                                     .y_type = bf16});
    const auto product = [&](int w, int to) {
      return matmul::Args{.w = at(w),
                          .x = at(h),
                          .y = at(to),
                          .n_rows = n_rows,
                          .n = n,
                          .k = k,
                          .w_type = type,
                          .x_type = bf16,
                          .y_type = bf16};
    };
    put_args(plain[1], product(gate, gates));
    put_args(plain[2], product(up, ups));
    put_args(
        plain[3],
        silu_mul::Args{
            .gate = at(gates), .up = at(ups), .y = at(y), .n_rows = n_rows, .n = n, .type = bf16});
  };
  return c;
}

}  // namespace

std::vector<FusedCase> cases() {
  std::vector<FusedCase> out;
  for (const DType type : kFusedTypes) {
    out.push_back(make_case(type, 1, 1, 32));
    out.push_back(make_case(type, 3, 40, 160));
    out.push_back(make_case(type, 3, 33, 2144));  // 16.75 segments
    for (const long long rows : {1, 2, 5, 8}) out.push_back(make_case(type, rows, 3072, 1024));
  }
  out.push_back(make_case(DType::bf16, 2, 17, 144));
  return out;
}

}  // namespace millrace::gated_input
