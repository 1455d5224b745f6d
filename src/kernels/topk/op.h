// The k largest of each row with their indices, sorted. Numerics: class exact; nothing is computed,
// so every variant returns the same bits: descending in the order of order.h (NaN last, -0 below
// +0), ties by the lower index, values as they stand in x.
#pragma once

#include <span>

#include "kernels/kernel.h"
#include "kernels/topk/args.h"

namespace millrace::topk {

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

namespace reference {
size_t workspace_bytes(const Args& args, int n_lanes);
Status run(const Args& args, Exec& exec);
}  // namespace reference
// The two ways the standard library offers, on (key, index) pairs: what a host without AVX2 runs,
// and the yardsticks that the vector variants are measured against.
namespace standard {
size_t workspace_bytes(const Args& args, int n_lanes);
Status run_partial_sort(const Args& args, Exec& exec);
Status run_nth_element(const Args& args, Exec& exec);
}  // namespace standard
namespace avx2 {
size_t workspace_bytes(const Args& args, int n_lanes);
Status run(const Args& args, Exec& exec);
}  // namespace avx2

}  // namespace millrace::topk
