#include <fmt/format.h>

#include <array>

#include "kernels/matmul/cases.h"
#include "kernels/matmul/op.h"
#include "tensor/format.h"

namespace millrace::matmul {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} n={} k={} w={} x={} y={}", a.n_rows, a.n, a.k, name_of(a.w_type),
                     name_of(a.x_type), name_of(a.y_type));
}

bool is_float(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

bool types_fit(const Args& a) {
  if (a.y_type != DType::f32 && a.y_type != DType::bf16) return false;
  if (is_float(a.w_type)) return a.x_type == DType::f32 || a.x_type == DType::bf16;
  return a.w_type >= DType::q8_0 && a.w_type <= DType::iq4_xs && a.x_type == DType::q8_row;
}

// Fastest first; the first that takes a problem is the default choice.
constexpr std::array kVariants = {
    Variant{.name = "scalar",
            .numerics = kI8B32,
            .takes = erase_takes<Args, scalar::takes>,
            .run = erase_run<Args, scalar::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

}  // namespace

Status validate(const Args& a) {
  if (!types_fit(a))
    return error(Code::unsupported,
                 "matmul: {} weights, {} activations, {} outputs (block formats take q8_row, float "
                 "weights f32 or bf16; outputs are f32 or bf16)",
                 name_of(a.w_type), name_of(a.x_type), name_of(a.y_type));
  if (a.n_rows < 0 || a.n < 1 || a.k < 1)
    return error(Code::invalid_argument, "matmul: {} rows of {} to {} outputs", a.n_rows, a.k, a.n);
  if (a.k % format_of(a.w_type).block_elems != 0 || a.k % format_of(a.x_type).block_elems != 0)
    return error(Code::invalid_argument, "matmul: k = {} is no whole number of blocks of {} and {}",
                 a.k, name_of(a.w_type), name_of(a.x_type));
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "matmul",
                .variants = variants,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>};

}  // namespace millrace::matmul
