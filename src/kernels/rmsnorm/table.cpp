#include <array>

#include "kernels/rmsnorm/cases.h"
#include "kernels/rmsnorm/op.h"
#include "tensor/format.h"
#ifdef MILLRACE_CUDA
#include "kernels/device.h"
#include "kernels/rmsnorm/device.h"
#endif

namespace millrace::rmsnorm {
namespace {

bool f32_only(const Args& a) {
  return a.x_type == DType::f32 && a.y_type == DType::f32;
}

bool is_float(DType type) {
  return type == DType::f32 || type == DType::bf16;
}

std::string key(const Args& a) {
  return fmt::format("rows={} n={} x={} y={}", a.n_rows, a.n, name_of(a.x_type), name_of(a.y_type));
}

constexpr std::string_view kLanes16 = "cpu.rmsnorm.lanes16";

constexpr std::array kVariants = {
#ifdef MILLRACE_CUDA
    Variant{.name = "sm80",
            .isa = Isa::sm80,
            .numerics = "cuda.rmsnorm.lanes256",
            .run = erase_launch<Args, launch_sm80>},
#endif
    Variant{.name = "avx512",
            .isa = Isa::avx512,
            .numerics = kLanes16,
            .takes = erase_takes<Args, f32_only>,
            .run = erase_run<Args, avx512::run>},
    Variant{.name = "avx2",
            .isa = Isa::avx2,
            .numerics = kLanes16,
            .takes = erase_takes<Args, f32_only>,
            .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n < 1)
    return error(Code::invalid_argument, "rmsnorm: shape {} x {} (rows >= 0, n >= 1)", a.n_rows,
                 a.n);
  if (!is_float(a.x_type) || !is_float(a.y_type))
    return error(Code::unsupported, "rmsnorm: {} to {} (f32 and bf16 only)", name_of(a.x_type),
                 name_of(a.y_type));
  if (!(a.eps >= 0)) return error(Code::invalid_argument, "rmsnorm: eps {} is negative", a.eps);
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "rmsnorm",
                .variants = variants,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>};

}  // namespace millrace::rmsnorm
