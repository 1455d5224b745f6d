#include <cmath>

#include "kernels/silu_mul/op.h"

namespace millrace::silu_mul::reference {

Status run(const Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  for (long long i = 0; i < a.n_rows * a.n; ++i) {
    const double gate = a.gate[i];
    a.y[i] = static_cast<float>(gate / (1.0 + std::exp(-gate)) * a.up[i]);
  }
  return {};
}

}  // namespace millrace::silu_mul::reference
