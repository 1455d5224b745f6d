#include "kernels/expert_sum/op.h"

namespace millrace::expert_sum::reference {
namespace {

double sum_at(const Args& a, long long row, long long i) {
  double sum = 0, weights = 0;
  for (long long j = 0; j < a.n_used; ++j) {
    const double weight = a.weights[row * a.n_used + j];
    weights += weight;
    sum += weight * a.x[(row * a.n_used + j) * a.n + i];
  }
  return a.normalise ? sum / weights : sum;
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  for (long long r = 0; r < a.n_rows; ++r)
    for (long long i = 0; i < a.n; ++i) a.y[r * a.n + i] = static_cast<float>(sum_at(a, r, i));
  return {};
}

}  // namespace millrace::expert_sum::reference
