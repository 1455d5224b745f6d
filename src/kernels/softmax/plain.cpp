// The witness: the class of op.h as plain loops.
#include <algorithm>
#include <limits>

#include "base/math.h"
#include "kernels/softmax/op.h"

namespace millrace::softmax::plain {
namespace {

void soften_row(const Args& a, const float* x, float* y) {
  float largest = -std::numeric_limits<float>::infinity();
  for (long long i = 0; i < a.n; ++i) largest = x[i] > largest ? x[i] : largest;
  float lanes[16] = {};
  for (long long i = 0; i < a.n; ++i) {
    y[i] = math::exp((x[i] - largest) * a.scale);
    lanes[i % 16] += y[i];
  }
  for (int half = 8; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  const float sum = lanes[0], factor = 1.0f / sum;
  for (long long i = 0; i < a.n; ++i)
    y[i] = sum != sum ? std::numeric_limits<float>::quiet_NaN() : y[i] * factor;
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  const Share rows = exec.rows(a.n_rows);
  for (long long r = rows.begin; r < rows.end; ++r) soften_row(a, a.x + r * a.n, a.y + r * a.n);
  return {};
}

}  // namespace millrace::softmax::plain
