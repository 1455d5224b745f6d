#include <cmath>

#include "kernels/rmsnorm/groups.h"
#include "kernels/rmsnorm/op.h"
#include "tensor/element.h"

namespace millrace::rmsnorm::reference {

Status run(const Args& a, Exec& exec) {
  for_each_group(a, exec, [&](long long r) {
    double sum = 0;
    for (long long i = 0; i < a.n; ++i) {
      const double x = load_element(a.x_type, a.x, r * a.n + i);
      sum += x * x;
    }
    const double scale = 1.0 / std::sqrt(sum / static_cast<double>(a.n) + a.eps);
    for (long long i = 0; i < a.n; ++i)
      store_element(
          a.y_type, a.y, r * a.n + i,
          static_cast<float>(load_element(a.x_type, a.x, r * a.n + i) * scale * a.weight[i]));
  });
  return {};
}

}  // namespace millrace::rmsnorm::reference
