#include "kernels/argmax/op.h"
#include "kernels/topk/order.h"

namespace millrace::argmax::reference {

Status run(const Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  for (long long r = 0; r < a.n_rows; ++r) {
    const float* x = a.x + r * a.n;
    int best = 0;
    for (int i = 1; i < a.n; ++i)
      if (topk::key_of(x[i]) > topk::key_of(x[best])) best = i;
    a.index[r] = best;
  }
  return {};
}

}  // namespace millrace::argmax::reference
