#include <array>

#include "kernels/quantize/cases.h"
#include "kernels/quantize/floor.h"
#include "kernels/quantize/op.h"
#include "kernels/quantize/row.h"

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

int64_t grain(const void*) {
  return kBlock;
}

void bind(const Bound& b, Args& a) {
  a.x = static_cast<const float*>(b.in[0].data);
  a.y = b.out[0].data;
  a.n_rows = b.in[0].n_rows * b.in[0].n_each;
  a.k = b.in[0].width;
}

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
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .splits = {.by_rows = true, .by_columns = true, .grain = grain},
                .bind = erase_bind<Args, bind>};

}  // namespace millrace::quantize
