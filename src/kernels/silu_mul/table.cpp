#include <array>

#include "kernels/silu_mul/cases.h"
#include "kernels/silu_mul/floor.h"
#include "kernels/silu_mul/op.h"
#include "tensor/format.h"
#ifdef MILLRACE_CUDA
#include "kernels/device.h"
#include "kernels/silu_mul/device.h"
#endif

namespace millrace::silu_mul {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} n={}{}", a.n_rows, a.n, a.type == DType::f32 ? "" : " x=bf16");
}

bool f32_only(const Args& a) {
  return a.type == DType::f32;
}

constexpr std::string_view kF32 = "cpu.silu_mul.f32";

constexpr std::array kVariants = {
#ifdef MILLRACE_CUDA
    Variant{.name = "sm80",
            .isa = Isa::sm80,
            .numerics = "cuda.silu_mul.f32",
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

constexpr std::array kWitnesses = {
    Variant{.name = "plain", .numerics = kF32, .run = erase_run<Args, plain::run>},
    Variant{
        .name = "plain_cuda", .numerics = "cuda.silu_mul.f32", .run = erase_run<Args, plain::run>},
};

std::span<const Variant> witnesses() {
  return kWitnesses;
}

int64_t grain(const void*) {
  return 16;
}

void bind(const Bound& b, Args& a) {
  a.gate = b.in[0].data;
  a.up = b.in[1].data;
  a.y = b.out[0].data;
  a.type = b.in[0].type;
  a.n_rows = b.in[0].n_rows * b.in[0].n_each;
}

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n < 1)
    return error(Code::invalid_argument, "silu_mul: shape {} x {} (rows >= 0, n >= 1)", a.n_rows,
                 a.n);
  if (a.type != DType::f32 && a.type != DType::bf16)
    return error(Code::unsupported, "silu_mul: {} (f32 and bf16 only)", name_of(a.type));
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "silu_mul",
                .variants = variants,
                .witnesses = witnesses,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .splits = {.by_rows = true, .by_columns = true, .grain = grain},
                .bind = erase_bind<Args, bind>,
                .in_place = true};

}  // namespace millrace::silu_mul
