#include <array>

#include "kernels/gelu_mul/cases.h"
#include "kernels/gelu_mul/op.h"

namespace millrace::gelu_mul {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} n={}", a.n_rows, a.n);
}

constexpr std::string_view kF32 = "cpu.gelu_mul.f32";

constexpr std::array kVariants = {
    Variant{.name = "avx512",
            .isa = Isa::avx512,
            .numerics = kF32,
            .run = erase_run<Args, avx512::run>},
    Variant{.name = "avx2", .isa = Isa::avx2, .numerics = kF32, .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n < 1)
    return error(Code::invalid_argument, "gelu_mul: shape {} x {} (rows >= 0, n >= 1)", a.n_rows,
                 a.n);
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "gelu_mul",
                .variants = variants,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>};

}  // namespace millrace::gelu_mul
