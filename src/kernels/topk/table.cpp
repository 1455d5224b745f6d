#include <array>

#include "kernels/topk/cases.h"
#include "kernels/topk/floor.h"
#include "kernels/topk/op.h"

namespace millrace::topk {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} n={} k={}", a.n_rows, a.n, a.k);
}

constexpr std::string_view kExact = "cpu.topk.exact";

constexpr std::array kVariants = {
    Variant{.name = "avx2",
            .isa = Isa::avx2,
            .numerics = kExact,
            .workspace_bytes = erase_workspace<Args, avx2::workspace_bytes>,
            .run = erase_run<Args, avx2::run>},
    Variant{.name = "std_nth_element",
            .numerics = kExact,
            .workspace_bytes = erase_workspace<Args, standard::workspace_bytes>,
            .run = erase_run<Args, standard::run_nth_element>},
    Variant{.name = "std_partial_sort",
            .numerics = kExact,
            .workspace_bytes = erase_workspace<Args, standard::workspace_bytes>,
            .run = erase_run<Args, standard::run_partial_sort>},
    Variant{.name = "reference",
            .numerics = kReference,
            .workspace_bytes = erase_workspace<Args, reference::workspace_bytes>,
            .run = erase_run<Args, reference::run>},
};

void bind(const Bound& b, Args& a) {
  a.x = static_cast<const float*>(b.in[0].data);
  a.values = static_cast<float*>(b.out[0].data);
  a.indices = static_cast<int*>(b.out[1].data);
  a.n_rows = b.in[0].n_rows;
}

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n < 1 || a.n > std::numeric_limits<int>::max())
    return error(Code::invalid_argument, "topk: shape {} x {} (rows >= 0, 1 <= n < 2^31)", a.n_rows,
                 a.n);
  if (a.k < 1 || a.k > a.n)
    return error(Code::invalid_argument, "topk: k {} of {} (1 <= k <= n)", a.k, a.n);
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "topk",
                .variants = variants,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .splits = {.by_rows = true},
                .bind = erase_bind<Args, bind>};

}  // namespace millrace::topk
