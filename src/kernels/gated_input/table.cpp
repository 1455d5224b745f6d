#include <array>

#include "kernels/gated_input/op.h"
#include "kernels/matmul/op.h"
#include "kernels/rmsnorm/op.h"
#include "kernels/silu_mul/op.h"
#ifdef MILLRACE_CUDA
#include "kernels/device.h"
#include "kernels/gated_input/device.h"
#endif

namespace millrace::gated_input {
namespace {

constexpr std::array kCalls = {
    FusedCall{&rmsnorm::kOp, "cuda.rmsnorm.lanes256"},
    FusedCall{&matmul::kOp, matmul::kBf16Cuda, "mma16"},
    FusedCall{&matmul::kOp, matmul::kBf16Cuda, "mma16"},
    FusedCall{&silu_mul::kOp, "cuda.silu_mul.f32"},
};
constexpr std::array kLinks = {FusedLink{1, 0, 0}, FusedLink{2, 0, 0}, FusedLink{3, 0, 1},
                               FusedLink{3, 1, 2}};

bool join(std::span<const ArgsBox> plain, ArgsBox& joined) {
  const auto& norm = args_in<rmsnorm::Args>(plain[0]);
  const auto& gate = args_in<matmul::Args>(plain[1]);
  const auto& up = args_in<matmul::Args>(plain[2]);
  const auto& out = args_in<silu_mul::Args>(plain[3]);
  const bool types_fit = norm.x_type == DType::f32 && norm.y_type == DType::bf16 &&
                         gate.y_type == DType::bf16 && up.y_type == DType::bf16 &&
                         out.type == DType::bf16;
  if (!types_fit || norm.n_groups != 1 || norm.n != gate.k || up.k != gate.k || up.n != gate.n ||
      up.w_type != gate.w_type || out.n != gate.n)
    return false;
  if (overlap(out.y, out.n_rows * out.n * 2, norm.x, norm.n_rows * norm.n * 4)) return false;
  put_args(joined, Args{.x = static_cast<const float*>(norm.x),
                        .norm = norm.weight,
                        .gate = gate.w,
                        .up = up.w,
                        .y = out.y,
                        .n_rows = norm.n_rows,
                        .n = gate.n,
                        .k = gate.k,
                        .eps = norm.eps,
                        .w_type = gate.w_type});
  return true;
}

}  // namespace

const Fusion kFusion = {.name = "gated_input",
                        .calls = kCalls,
                        .links = kLinks,
                        .kept = 3,
                        .join = join,
                        .cases = cases,
                        .variant = {
#ifdef MILLRACE_CUDA
                            .name = "sm80",
                            .isa = Isa::sm80,
                            .numerics = "cuda.gated_input",
                            .layout = "mma16",
                            .takes = erase_takes<Args, takes_sm80>,
                            .run = erase_launch<Args, launch_sm80>
#endif
                        }};

}  // namespace millrace::gated_input
