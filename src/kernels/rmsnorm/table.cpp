#include <array>

#include "kernels/rmsnorm/cases.h"
#include "kernels/rmsnorm/floor.h"
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
  return fmt::format("rows={} n={} x={} y={}", a.n_rows * a.n_groups, a.n, name_of(a.x_type),
                     name_of(a.y_type));
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

constexpr std::array kWitnesses = {
    Variant{.name = "plain", .numerics = kLanes16, .run = erase_run<Args, plain::run_lanes16>},
    Variant{.name = "plain_cuda",
            .numerics = "cuda.rmsnorm.lanes256",
            .run = erase_run<Args, plain::run_lanes256>},
};

std::span<const Variant> witnesses() {
  return kWitnesses;
}

// Whole rows, or the groups of every row.
int64_t grain(const void* args) {
  return static_cast<const Args*>(args)->n;
}

void bind(const Bound& b, Args& a) {
  a.x = b.in[0].data;
  a.x_type = b.in[0].type;
  a.weight = static_cast<const float*>(b.weights[0].data);
  a.y = b.out[0].data;
  a.y_type = b.out[0].type;
  a.n_rows = b.in[0].n_rows;
  a.n_groups = b.in[0].n_each * b.in[0].width / a.n;
}

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n_groups < 1 || a.n < 1)
    return error(Code::invalid_argument,
                 "rmsnorm: shape {} x {} x {} (rows >= 0, groups and n >= 1)", a.n_rows, a.n_groups,
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
                .witnesses = witnesses,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .splits = {.by_rows = true, .by_columns = true, .grain = grain},
                .bind = erase_bind<Args, bind>,
                .in_place = true};

}  // namespace millrace::rmsnorm
