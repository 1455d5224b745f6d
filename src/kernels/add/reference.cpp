#include <limits>

#include "kernels/add/op.h"
#include "kernels/runs.h"
#include "tensor/element.h"

namespace millrace::add::reference {

Status run(const Args& a, Exec& exec) {
  for_each_run(exec, a.n_rows, a.n, [&](int64_t first, int64_t n) {
    for (int64_t i = first; i < first + n; ++i) {
      const float b = load_element(a.b_type, a.b, a.is_bias ? i % a.n : i);
      const float sum = load_element(a.a_type, a.a, i) + b;
      store_element(a.y_type, a.y, i, sum != sum ? std::numeric_limits<float>::quiet_NaN() : sum);
    }
  });
  return {};
}

}  // namespace millrace::add::reference
