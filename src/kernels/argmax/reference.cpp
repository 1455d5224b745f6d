#include "kernels/argmax/op.h"
#include "kernels/topk/order.h"

namespace millrace::argmax::reference {

Status run(const Args& a, Exec& exec) {
  const Share rows = exec.rows(a.n_rows);
  for (long long r = rows.begin; r < rows.end; ++r) {
    const float* x = a.x + r * a.n;
    int best = 0;
    for (int i = 1; i < a.n; ++i)
      if (topk::key_of(x[i]) > topk::key_of(x[best])) best = i;
    a.index[r] = best;
  }
  return {};
}

}  // namespace millrace::argmax::reference
