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
  const Share rows = exec.rows(a.n_rows), columns = exec.columns(a.n);
  for (long long r = rows.begin; r < rows.end; ++r)
    for (long long i = columns.begin; i < columns.end; ++i)
      a.y[r * a.n + i] = static_cast<float>(sum_at(a, r, i));
  return {};
}

}  // namespace millrace::expert_sum::reference
