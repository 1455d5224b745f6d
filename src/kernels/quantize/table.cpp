#include <array>

#include "kernels/quantize/cases.h"
#include "kernels/quantize/op.h"

namespace millrace::quantize {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} k={}", a.n_rows, a.k);
}

constexpr std::string_view kQ8Row = "cpu.quantize.q8_row";

constexpr std::array kVariants = {
    Variant{
        .name = "avx2", .isa = Isa::avx2, .numerics = kQ8Row, .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.k < kBlock || a.k % kBlock != 0)
    return error(Code::invalid_argument, "quantize: shape {} x {} (rows >= 0, k a multiple of {})",
                 a.n_rows, a.k, kBlock);
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "quantize",
                .variants = variants,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>};

}  // namespace millrace::quantize
