#include <fmt/format.h>

#include <array>
#include <limits>

#include "kernels/sample/cases.h"
#include "kernels/sample/floor.h"
#include "kernels/sample/op.h"
#include "kernels/sample/rows.h"
#ifdef MILLRACE_CUDA
#include "kernels/device.h"
#include "kernels/sample/device.h"
#endif

namespace millrace::sample {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} n={}", a.n_rows, a.n);
}

constexpr std::array kVariants = {
#ifdef MILLRACE_CUDA
    Variant{.name = "sm80",
            .isa = Isa::sm80,
            .numerics = kDeviceBlocks,
            .takes = erase_takes<Args, takes_sm80>,
            .workspace_bytes = erase_workspace<Args, sm80_workspace_bytes>,
            .run = erase_launch<Args, launch_sm80>},
#endif
    Variant{.name = "avx512",
            .isa = Isa::avx512,
            .numerics = kBlocks,
            .workspace_bytes = erase_workspace<Args, rows_workspace_bytes>,
            .run = erase_run<Args, avx512::run>},
    Variant{.name = "avx2",
            .isa = Isa::avx2,
            .numerics = kBlocks,
            .workspace_bytes = erase_workspace<Args, rows_workspace_bytes>,
            .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference",
            .numerics = kReference,
            .workspace_bytes = erase_workspace<Args, reference::workspace_bytes>,
            .run = erase_run<Args, reference::run>},
};

// The reference follows the order of the class: a choice is right or wrong, not close.
constexpr std::array kWitnesses = {
    Variant{.name = "plain",
            .numerics = kBlocks,
            .workspace_bytes = erase_workspace<Args, reference::workspace_bytes>,
            .run = erase_run<Args, reference::run>},
    Variant{.name = "plain_cuda",
            .numerics = kDeviceBlocks,
            .workspace_bytes = erase_workspace<Args, reference::workspace_bytes>,
            .run = erase_run<Args, reference::run>},
};

std::span<const Variant> witnesses() {
  return kWitnesses;
}

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n < 1 || a.n > std::numeric_limits<int>::max())
    return error(Code::invalid_argument, "sample: shape {} x {} (rows >= 0, 1 <= n < 2^31)",
                 a.n_rows, a.n);
  if (a.mask != nullptr && (a.mask_row == nullptr || a.mask_words < (a.n + 31) / 32))
    return error(Code::invalid_argument, "sample: a mask of {} words for {} tokens, {} mask_row",
                 a.mask_words, a.n, a.mask_row != nullptr ? "with" : "without");
  if (a.max_top < 0 || a.max_top > kMaxTop || (a.max_top > 0 && a.logprob == nullptr))
    return error(Code::invalid_argument, "sample: max_top {} (0 to {}, above 0 with logprob)",
                 a.max_top, kMaxTop);
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "sample",
                .variants = variants,
                .witnesses = witnesses,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>};

}  // namespace millrace::sample
