// The witness: the class of op.h as a plain loop.
#include <cmath>
#include <limits>

#include "kernels/expert_sum/op.h"

namespace millrace::expert_sum::plain {

Status run(const Args& a, Exec& exec) {
  const Share rows = exec.rows(a.n_rows), columns = exec.columns(a.n);
  for (long long r = rows.begin; r < rows.end; ++r) {
    const float divisor = a.normalise ? weight_sum(a, r) : 1.0f;
    for (long long i = columns.begin; i < columns.end; ++i) {
      float sum = 0;
      for (long long j = r * a.n_used; j < (r + 1) * a.n_used; ++j)
        sum = std::fma(a.weights[j] / divisor, a.x[j * a.n + i], sum);
      a.y[r * a.n + i] = sum != sum ? std::numeric_limits<float>::quiet_NaN() : sum;
    }
  }
  return {};
}

}  // namespace millrace::expert_sum::plain
