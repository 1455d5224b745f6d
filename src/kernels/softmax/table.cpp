#include <array>
#include <cmath>

#include "kernels/softmax/cases.h"
#include "kernels/softmax/floor.h"
#include "kernels/softmax/op.h"

namespace millrace::softmax {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} n={}", a.n_rows, a.n);
}

constexpr std::string_view kLanes16 = "cpu.softmax.lanes16";

constexpr std::array kVariants = {
    Variant{.name = "avx512",
            .isa = Isa::avx512,
            .numerics = kLanes16,
            .run = erase_run<Args, avx512::run>},
    Variant{
        .name = "avx2", .isa = Isa::avx2, .numerics = kLanes16, .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

constexpr std::array kWitnesses = {
    Variant{.name = "plain", .numerics = kLanes16, .run = erase_run<Args, plain::run>},
};

std::span<const Variant> witnesses() {
  return kWitnesses;
}

void bind(const Bound& b, Args& a) {
  a.x = static_cast<const float*>(b.in[0].data);
  a.y = static_cast<float*>(b.out[0].data);
  a.n_rows = b.in[0].n_rows;
}

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n < 1)
    return error(Code::invalid_argument, "softmax: shape {} x {} (rows >= 0, n >= 1)", a.n_rows,
                 a.n);
  if (!(a.scale > 0) || !std::isfinite(a.scale))
    return error(Code::invalid_argument, "softmax: scale {} (positive and finite)", a.scale);
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "softmax",
                .variants = variants,
                .witnesses = witnesses,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .splits = {.by_rows = true},
                .bind = erase_bind<Args, bind>,
                .in_place = true};

}  // namespace millrace::softmax
