#include <array>

#include "kernels/sample/cases.h"
#include "kernels/sample/op.h"
#include "kernels/sample/rows.h"

namespace millrace::sample {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} n={}", a.n_rows, a.n);
}

constexpr std::string_view kSorted = "cpu.sample.sorted";

constexpr std::array kVariants = {
    Variant{.name = "avx512",
            .isa = Isa::avx512,
            .numerics = kSorted,
            .workspace_bytes = erase_workspace<Args, rows_workspace_bytes>,
            .run = erase_run<Args, avx512::run>},
    Variant{.name = "avx2",
            .isa = Isa::avx2,
            .numerics = kSorted,
            .workspace_bytes = erase_workspace<Args, rows_workspace_bytes>,
            .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference",
            .numerics = kReference,
            .workspace_bytes = erase_workspace<Args, reference::workspace_bytes>,
            .run = erase_run<Args, reference::run>},
};

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n < 1 || a.n > std::numeric_limits<int>::max())
    return error(Code::invalid_argument, "sample: shape {} x {} (rows >= 0, 1 <= n < 2^31)",
                 a.n_rows, a.n);
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "sample",
                .variants = variants,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>};

}  // namespace millrace::sample
