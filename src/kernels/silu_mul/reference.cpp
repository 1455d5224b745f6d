#include <cmath>

#include "kernels/runs.h"
#include "kernels/silu_mul/op.h"
#include "tensor/element.h"

namespace millrace::silu_mul::reference {

Status run(const Args& a, Exec& exec) {
  for_each_run(exec, a.n_rows, a.n, [&](int64_t first, int64_t n) {
    for (int64_t i = first; i < first + n; ++i) {
      const double gate = load_element(a.type, a.gate, i);
      const double y = gate / (1.0 + std::exp(-gate)) * load_element(a.type, a.up, i);
      store_element(a.type, a.y, i, static_cast<float>(y));
    }
  });
  return {};
}

}  // namespace millrace::silu_mul::reference
