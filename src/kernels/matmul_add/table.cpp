#include <array>

#include "kernels/add/op.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul_add/op.h"
#ifdef MILLRACE_CUDA
#include "kernels/device.h"
#include "kernels/matmul_add/device.h"
#endif

namespace millrace::matmul_add {
namespace {

constexpr std::array kCalls = {
    FusedCall{&matmul::kOp, matmul::kBf16Cuda, "mma16"},
    FusedCall{&add::kOp, "cuda.add.f32"},
};
constexpr std::array kLinks = {FusedLink{1, 1, 0}};

bool join(std::span<const ArgsBox> plain, ArgsBox& joined) {
  const auto& product = args_in<matmul::Args>(plain[0]);
  const auto& sum = args_in<add::Args>(plain[1]);
  const bool is_f32 = product.y_type == DType::f32 && sum.a_type == DType::f32 &&
                      sum.b_type == DType::f32 && sum.y_type == DType::f32;
  if (!is_f32 || sum.is_bias || sum.n != product.n || sum.n_rows != product.n_rows) return false;
  if (overlap(sum.y, sum.n_rows * sum.n * 4, product.x, product.n_rows * product.k * 2))
    return false;
  put_args(joined, Args{.w = product.w,
                        .x = product.x,
                        .a = static_cast<const float*>(sum.a),
                        .y = static_cast<float*>(sum.y),
                        .n_rows = product.n_rows,
                        .n = product.n,
                        .k = product.k,
                        .w_type = product.w_type});
  return true;
}

}  // namespace

const Fusion kFusion = {.name = "matmul_add",
                        .calls = kCalls,
                        .links = kLinks,
                        .kept = 1,
                        .join = join,
                        .cases = cases,
                        .variant = {
#ifdef MILLRACE_CUDA
                            .name = "sm80",
                            .isa = Isa::sm80,
                            .numerics = "cuda.matmul_add",
                            .layout = "mma16",
                            .takes = erase_takes<Args, takes_sm80>,
                            .run = erase_launch<Args, launch_sm80>
#endif
                        }};

}  // namespace millrace::matmul_add
