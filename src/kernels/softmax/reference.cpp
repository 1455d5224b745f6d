#include <cmath>
#include <limits>

#include "kernels/softmax/op.h"

namespace millrace::softmax::reference {
namespace {

double largest(const float* x, long long n) {
  double m = -std::numeric_limits<double>::infinity();
  for (long long i = 0; i < n; ++i)
    if (x[i] > m) m = x[i];
  return m;
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  const Share rows = exec.rows(a.n_rows);
  for (long long r = rows.begin; r < rows.end; ++r) {
    const float* x = a.x + r * a.n;
    const double m = largest(x, a.n);
    double sum = 0;
    for (long long i = 0; i < a.n; ++i) sum += std::exp((x[i] - m) * a.scale);
    for (long long i = 0; i < a.n; ++i)
      a.y[r * a.n + i] = static_cast<float>(std::exp((x[i] - m) * a.scale) / sum);
  }
  return {};
}

}  // namespace millrace::softmax::reference
