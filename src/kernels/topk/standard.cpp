#include <algorithm>

#include "kernels/topk/op.h"
#include "kernels/topk/order.h"

namespace millrace::topk::standard {
namespace {

using Select = void (*)(Candidate* begin, Candidate* kth, Candidate* end);

void partial_sort(Candidate* begin, Candidate* kth, Candidate* end) {
  std::partial_sort(begin, kth, end, [](const auto& a, const auto& b) { return before(a, b); });
}

void nth_element(Candidate* begin, Candidate* kth, Candidate* end) {
  const auto less = [](const auto& a, const auto& b) { return before(a, b); };
  if (kth != end) std::nth_element(begin, kth, end, less);
  std::sort(begin, kth, less);
}

Status run(const Args& a, Exec& exec, Select select) {
  auto* pairs = reinterpret_cast<Candidate*>(exec.workspace) + exec.lane * a.n;
  const Share rows = exec.rows(a.n_rows);
  for (long long r = rows.begin; r < rows.end; ++r) {
    const float* x = a.x + r * a.n;
    for (int i = 0; i < a.n; ++i) pairs[i] = {key_of(x[i]), i};
    select(pairs, pairs + a.k, pairs + a.n);
    for (long long j = 0; j < a.k; ++j) {
      a.indices[r * a.k + j] = pairs[j].index;
      a.values[r * a.k + j] = x[pairs[j].index];
    }
  }
  return {};
}

}  // namespace

size_t workspace_bytes(const Args& a, int n_lanes) {
  return static_cast<size_t>(a.n * n_lanes) * sizeof(Candidate);
}

Status run_partial_sort(const Args& a, Exec& exec) {
  return run(a, exec, partial_sort);
}

Status run_nth_element(const Args& a, Exec& exec) {
  return run(a, exec, nth_element);
}

}  // namespace millrace::topk::standard
