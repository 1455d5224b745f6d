// Tails of tiles and segments, more segments than a block has warps, in place and not, and the two
// products of a Qwen3-0.6B layer.
#include <fmt/format.h>

#include "kernels/add/args.h"
#include "kernels/matmul/args.h"
#include "kernels/matmul_add/op.h"

namespace millrace::matmul_add {
namespace {

FusedCase make_case(DType type, long long n_rows, long long n, long long least_k, bool in_place) {
  const long long k = whole_k(type, least_k);
  FusedCase c{.name = fmt::format("{}_{}x{}x{}{}", name_of(type), n_rows, n, k,
                                  in_place ? "_in_place" : "")};
  const int w = c.weight("w", type, n * k), x = c.input("x", DType::bf16, n_rows * k);
  const int product = c.made("product", DType::f32, n_rows * n);
  const int a =
      in_place ? c.changed("y", DType::f32, n_rows * n) : c.input("a", DType::f32, n_rows * n);
  const int y = in_place ? a : c.made("y", DType::f32, n_rows * n, true);
  c.weights = {w, -1};
  c.bind = [=](std::span<void* const> port, std::span<ArgsBox> plain) {
    const auto at = [&](int i) { return port[static_cast<size_t>(i)]; };
    put_args(plain[0], matmul::Args{.w = at(w),
                                    .x = at(x),
                                    .y = at(product),
                                    .n_rows = n_rows,
                                    .n = n,
                                    .k = k,
                                    .w_type = type,
                                    .x_type = DType::bf16,
                                    .y_type = DType::f32});
    put_args(
        plain[1],
        add::Args{
            .a = at(a), .b = at(product), .y = at(y), .n_rows = n_rows, .n = n, .is_bias = false});
  };
  return c;
}

}  // namespace

std::vector<FusedCase> cases() {
  std::vector<FusedCase> out;
  for (const DType type : kFusedTypes) {
    out.push_back(make_case(type, 1, 1, 32, false));
    out.push_back(make_case(type, 3, 40, 160, true));
    out.push_back(make_case(type, 7, 33, 3296, false));  // 25.75 segments
    out.push_back(make_case(type, 8, 16, 4096, true));
    for (const long long rows : {1, 2, 5, 8}) {
      out.push_back(make_case(type, rows, 1024, 2048, true));
      out.push_back(make_case(type, rows, 1024, 3072, false));
    }
  }
  out.push_back(make_case(DType::bf16, 2, 17, 144, false));
  return out;
}

}  // namespace millrace::matmul_add
