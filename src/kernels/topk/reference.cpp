#include <algorithm>

#include "kernels/topk/op.h"
#include "kernels/topk/order.h"

namespace millrace::topk::reference {

size_t workspace_bytes(const Args& a, int n_lanes) {
  return static_cast<size_t>(a.n * n_lanes) * sizeof(Candidate);
}

Status run(const Args& a, Exec& exec) {
  auto* all = reinterpret_cast<Candidate*>(exec.workspace) + exec.lane * a.n;
  const Share rows = exec.rows(a.n_rows);
  for (long long r = rows.begin; r < rows.end; ++r) {
    const float* x = a.x + r * a.n;
    for (int i = 0; i < a.n; ++i) all[i] = {key_of(x[i]), i};
    std::sort(all, all + a.n, before);
    for (long long j = 0; j < a.k; ++j) {
      a.indices[r * a.k + j] = all[j].index;
      a.values[r * a.k + j] = x[all[j].index];
    }
  }
  return {};
}

}  // namespace millrace::topk::reference
