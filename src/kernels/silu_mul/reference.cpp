#include <cmath>

#include "kernels/runs.h"
#include "kernels/silu_mul/op.h"

namespace millrace::silu_mul::reference {

Status run(const Args& a, Exec& exec) {
  for_each_run(exec, a.n_rows, a.n, [&](int64_t first, int64_t n) {
    for (int64_t i = first; i < first + n; ++i) {
      const double gate = a.gate[i];
      a.y[i] = static_cast<float>(gate / (1.0 + std::exp(-gate)) * a.up[i]);
    }
  });
  return {};
}

}  // namespace millrace::silu_mul::reference
