#include <cmath>

#include "base/small_float.h"
#include "kernels/rmsnorm/op.h"

namespace millrace::rmsnorm::reference {
namespace {

double load(const void* x, DType type, long long i) {
  return type == DType::f32 ? static_cast<const float*>(x)[i]
                            : bf16_to_f32(static_cast<const uint16_t*>(x)[i]);
}

void store(void* y, DType type, long long i, double value) {
  const float rounded = static_cast<float>(value);
  if (type == DType::f32)
    static_cast<float*>(y)[i] = rounded;
  else
    static_cast<uint16_t*>(y)[i] = f32_to_bf16(rounded);
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  for (long long r = 0; r < a.n_rows; ++r) {
    double sum = 0;
    for (long long i = 0; i < a.n; ++i) {
      const double x = load(a.x, a.x_type, r * a.n + i);
      sum += x * x;
    }
    const double scale = 1.0 / std::sqrt(sum / static_cast<double>(a.n) + a.eps);
    for (long long i = 0; i < a.n; ++i)
      store(a.y, a.y_type, r * a.n + i, load(a.x, a.x_type, r * a.n + i) * scale * a.weight[i]);
  }
  return {};
}

}  // namespace millrace::rmsnorm::reference
