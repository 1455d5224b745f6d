#include <array>

#include "kernels/expert_sum/cases.h"
#include "kernels/expert_sum/floor.h"
#include "kernels/expert_sum/op.h"

namespace millrace::expert_sum {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} used={} n={}{}", a.n_rows, a.n_used, a.n,
                     a.normalise ? " normalised" : "");
}

constexpr std::array kVariants = {
    Variant{.name = "avx2",
            .isa = Isa::avx2,
            .numerics = "cpu.expert_sum.ascending",
            .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

constexpr std::array kWitnesses = {
    Variant{.name = "plain",
            .numerics = "cpu.expert_sum.ascending",
            .run = erase_run<Args, plain::run>},
};

std::span<const Variant> witnesses() {
  return kWitnesses;
}

int64_t grain(const void*) {
  return 16;
}

void bind(const Bound& b, Args& a) {
  a.x = static_cast<const float*>(b.in[0].data);
  a.weights = static_cast<const float*>(b.in[1].data);
  a.y = static_cast<float*>(b.out[0].data);
  a.n_rows = b.in[0].n_rows;
}

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n_used < 1 || a.n < 1)
    return error(Code::invalid_argument, "expert_sum: {} rows of {} experts of {}", a.n_rows,
                 a.n_used, a.n);
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "expert_sum",
                .variants = variants,
                .witnesses = witnesses,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .splits = {.by_rows = true, .by_columns = true, .grain = grain},
                .bind = erase_bind<Args, bind>};

}  // namespace millrace::expert_sum
