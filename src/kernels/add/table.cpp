#include <array>

#include "kernels/add/cases.h"
#include "kernels/add/floor.h"
#include "kernels/add/op.h"
#include "tensor/format.h"
#ifdef MILLRACE_CUDA
#include "kernels/add/device.h"
#include "kernels/device.h"
#endif

namespace millrace::add {
namespace {

bool is_float(DType type) {
  return type == DType::f32 || type == DType::bf16;
}

bool f32_only(const Args& a) {
  return a.a_type == DType::f32 && a.b_type == DType::f32 && a.y_type == DType::f32;
}

std::string key(const Args& a) {
  const std::string shape = fmt::format("rows={} n={}{}", a.n_rows, a.n, a.is_bias ? " bias" : "");
  if (f32_only(a)) return shape;
  return fmt::format("{} a={} b={} y={}", shape, name_of(a.a_type), name_of(a.b_type),
                     name_of(a.y_type));
}

constexpr std::string_view kF32 = "cpu.add.f32";

constexpr std::array kVariants = {
#ifdef MILLRACE_CUDA
    Variant{.name = "sm80",
            .isa = Isa::sm80,
            .numerics = "cuda.add.f32",
            .run = erase_launch<Args, launch_sm80>},
#endif
    Variant{.name = "avx512",
            .isa = Isa::avx512,
            .numerics = kF32,
            .takes = erase_takes<Args, f32_only>,
            .run = erase_run<Args, avx512::run>},
    Variant{.name = "avx2",
            .isa = Isa::avx2,
            .numerics = kF32,
            .takes = erase_takes<Args, f32_only>,
            .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

int64_t grain(const void*) {
  return 16;
}

void bind(const Bound& b, Args& a) {
  a.a = b.in[0].data;
  a.a_type = b.in[0].type;
  a.is_bias = !b.weights.empty();
  a.b = a.is_bias ? b.weights[0].data : b.in[1].data;
  a.b_type = a.is_bias ? DType::f32 : b.in[1].type;
  a.y = b.out[0].data;
  a.y_type = b.out[0].type;
  a.n_rows = b.in[0].n_rows;
}

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n < 1)
    return error(Code::invalid_argument, "add: shape {} x {} (rows >= 0, n >= 1)", a.n_rows, a.n);
  if (!is_float(a.a_type) || !is_float(a.b_type) || !is_float(a.y_type))
    return error(Code::unsupported, "add: {} and {} to {} (f32 and bf16 only)", name_of(a.a_type),
                 name_of(a.b_type), name_of(a.y_type));
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "add",
                .variants = variants,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .splits = {.by_rows = true, .by_columns = true, .grain = grain},
                .bind = erase_bind<Args, bind>,
                .in_place = true};

}  // namespace millrace::add
