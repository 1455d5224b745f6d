#include <array>

#include "kernels/rope/cases.h"
#include "kernels/rope/floor.h"
#include "kernels/rope/op.h"
#include "tensor/format.h"
#ifdef MILLRACE_CUDA
#include "kernels/device.h"
#include "kernels/rope/device.h"
#endif

namespace millrace::rope {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} heads={} dim={} rot={} order={} x={}", a.n_rows, a.n_heads,
                     a.head_dim, a.rot_dim, a.order == PairOrder::neox ? "neox" : "normal",
                     name_of(a.type));
}

bool f32_only(const Args& a) {
  return a.type == DType::f32;
}

constexpr std::array kVariants = {
#ifdef MILLRACE_CUDA
    Variant{.name = "sm80",
            .isa = Isa::sm80,
            .numerics = "cuda.rope.turns",
            .takes = erase_takes<Args, takes_sm80>,
            .run = erase_launch<Args, launch_sm80>},
#endif
    Variant{.name = "avx2",
            .isa = Isa::avx2,
            .numerics = kTurns,
            .takes = erase_takes<Args, f32_only>,
            .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

constexpr std::array kWitnesses = {
    Variant{.name = "plain", .numerics = kTurns, .run = erase_run<Args, plain::run>},
    Variant{
        .name = "plain_cuda", .numerics = "cuda.rope.turns", .run = erase_run<Args, plain::run>},
};

std::span<const Variant> witnesses() {
  return kWitnesses;
}

int64_t grain(const void* args) {
  return static_cast<const Args*>(args)->head_dim;
}

void bind(const Bound& b, Args& a) {
  a.x = b.in[0].data;
  a.type = b.in[0].type;
  a.positions = static_cast<const int*>(b.in[1].data);
  a.turns = static_cast<const unsigned long long*>(b.weights[0].data);
  a.y = b.out[0].data;
  a.n_rows = b.in[0].n_rows;
  a.x_stride = a.y_stride = a.n_heads * a.head_dim;
}

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n_heads < 1 || a.head_dim < 2)
    return error(Code::invalid_argument,
                 "rope: shape {} x {} x {} (rows >= 0, heads >= 1, dim >= 2)", a.n_rows, a.n_heads,
                 a.head_dim);
  if (a.rot_dim < 2 || a.rot_dim % 2 != 0 || a.rot_dim > a.head_dim || a.rot_dim > kMaxRotDim)
    return error(Code::invalid_argument, "rope: rot_dim {} of head_dim {} (even, 2 to {})",
                 a.rot_dim, a.head_dim, kMaxRotDim);
  if (a.x_stride < a.n_heads * a.head_dim || a.y_stride < a.n_heads * a.head_dim)
    return error(Code::invalid_argument, "rope: strides {} and {} are below a row of {}",
                 a.x_stride, a.y_stride, a.n_heads * a.head_dim);
  if (a.type != DType::f32 && a.type != DType::bf16)
    return error(Code::unsupported, "rope: {} (f32 and bf16 only)", name_of(a.type));
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "rope",
                .variants = variants,
                .witnesses = witnesses,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .splits = {.by_rows = true, .by_columns = true, .grain = grain},
                .bind = erase_bind<Args, bind>,
                .in_place = true};

}  // namespace millrace::rope
