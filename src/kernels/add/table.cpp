#include <array>

#include "kernels/add/cases.h"
#include "kernels/add/op.h"

namespace millrace::add {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} n={}{}", a.n_rows, a.n, a.is_bias ? " bias" : "");
}

constexpr std::string_view kF32 = "cpu.add.f32";

constexpr std::array kVariants = {
    Variant{.name = "avx512",
            .isa = Isa::avx512,
            .numerics = kF32,
            .run = erase_run<Args, avx512::run>},
    Variant{.name = "avx2", .isa = Isa::avx2, .numerics = kF32, .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

int64_t grain(const void*) {
  return 16;
}

void bind(const Bound& b, Args& a) {
  a.a = static_cast<const float*>(b.in[0].data);
  a.is_bias = !b.weights.empty();
  a.b = static_cast<const float*>(a.is_bias ? b.weights[0].data : b.in[1].data);
  a.y = static_cast<float*>(b.out[0].data);
  a.n_rows = b.in[0].n_rows;
}

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n < 1)
    return error(Code::invalid_argument, "add: shape {} x {} (rows >= 0, n >= 1)", a.n_rows, a.n);
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
                .splits = {.by_rows = true, .by_columns = true, .grain = grain},
                .bind = erase_bind<Args, bind>,
                .in_place = true};

}  // namespace millrace::add
