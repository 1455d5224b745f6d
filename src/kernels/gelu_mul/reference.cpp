#include <cmath>
#include <numbers>

#include "kernels/gelu_mul/op.h"

namespace millrace::gelu_mul::reference {
namespace {

// x/2 * (1 + tanh(t/2)) is x / (1 + exp(-t)), which loses nothing where tanh is near -1.
double exponent(double x) {
  return std::sqrt(8 / std::numbers::pi) * (x + 0.044715 * x * x * x);
}

double gelu(double x) {
  return x / (1 + std::exp(-exponent(x)));
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  for (long long i = 0; i < a.n_rows * a.n; ++i)
    a.y[i] = static_cast<float>(gelu(a.gate[i]) * a.up[i]);
  return {};
}

// gelu: 4 + 4 |t| / (1 + exp(t)) roundings (base/math.h); the product and the reference's own
// rounding make two more.
void magnitudes(const Args& a, std::span<double> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const double t = exponent(a.gate[i]), share = 1 / (1 + std::exp(t));
    const double of_t = share == 0 ? 0 : 4 * std::fabs(t) * share;
    out[i] = (6 + of_t) * std::fabs(gelu(a.gate[i]) * a.up[i]);
  }
}

}  // namespace millrace::gelu_mul::reference
