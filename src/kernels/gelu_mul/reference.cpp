#include <cmath>
#include <numbers>

#include "kernels/gelu_mul/op.h"
#include "kernels/runs.h"
#include "tensor/element.h"

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
  for_each_run(exec, a.n_rows, a.n, [&](int64_t first, int64_t n) {
    for (int64_t i = first; i < first + n; ++i) {
      const double y = gelu(load_element(a.type, a.gate, i)) * load_element(a.type, a.up, i);
      store_element(a.type, a.y, i, static_cast<float>(y));
    }
  });
  return {};
}

// gelu: 4 + 4 |t| / (1 + exp(t)) roundings (base/math.h); the product and the reference's own
// rounding make two more.
void magnitudes(const Args& a, std::span<double> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const double gate = load_element(a.type, a.gate, at), up = load_element(a.type, a.up, at);
    const double t = exponent(gate), share = 1 / (1 + std::exp(t));
    const double of_t = share == 0 ? 0 : 4 * std::fabs(t) * share;
    out[i] = (6 + of_t) * std::fabs(gelu(gate) * up);
  }
}

}  // namespace millrace::gelu_mul::reference
