#include <limits>

#include "kernels/add/op.h"
#include "tensor/element.h"

namespace millrace::add::reference {

Status run(const Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  for (long long i = 0; i < a.n_rows * a.n; ++i) {
    const float b = load_element(a.b_type, a.b, a.is_bias ? i % a.n : i);
    const float sum = load_element(a.a_type, a.a, i) + b;
    store_element(a.y_type, a.y, i, sum != sum ? std::numeric_limits<float>::quiet_NaN() : sum);
  }
  return {};
}

}  // namespace millrace::add::reference
