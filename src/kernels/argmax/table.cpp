#include <array>

#include "kernels/argmax/cases.h"
#include "kernels/argmax/floor.h"
#include "kernels/argmax/op.h"
#ifdef MILLRACE_CUDA
#include "kernels/argmax/device.h"
#include "kernels/device.h"
#endif

namespace millrace::argmax {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} n={}", a.n_rows, a.n);
}

constexpr std::array kVariants = {
#ifdef MILLRACE_CUDA
    Variant{.name = "sm80",
            .isa = Isa::sm80,
            .numerics = "cuda.argmax.exact",
            .takes = erase_takes<Args, takes_sm80>,
            .workspace_bytes = erase_workspace<Args, sm80_workspace_bytes>,
            .run = erase_launch<Args, launch_sm80>},
#endif
    Variant{.name = "avx2",
            .isa = Isa::avx2,
            .numerics = "cpu.argmax.exact",
            .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n < 1 || a.n > std::numeric_limits<int>::max())
    return error(Code::invalid_argument, "argmax: shape {} x {} (rows >= 0, 1 <= n < 2^31)",
                 a.n_rows, a.n);
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "argmax",
                .variants = variants,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .splits = {.by_rows = true}};

}  // namespace millrace::argmax
