// The definition of op.h in plain loops over the whole sorted row. The weights are the class's own
// f32 values, so that the choice, which is discrete, is the same; sums run in double in index
// order.
#include <algorithm>

#include "base/math.h"
#include "kernels/sample/op.h"
#include "kernels/sample/plan.h"
#include "kernels/topk/order.h"

namespace millrace::sample::reference {
namespace {

using topk::Candidate;

struct Sorted {
  const float* x;
  Candidate* at;  // [n], in topk's order
  float* weight;  // [n], of at[j]
  long long n;
};

double mass(const float* x, long long n, float largest, float scale) {
  double sum = 0;
  for (long long i = 0; i < n; ++i)
    if (x[i] == x[i]) sum += math::exp((x[i] - largest) * scale);
  return sum;
}

double sum_of_first(const Sorted& row, long long n) {
  double sum = 0;
  for (long long j = 0; j < n; ++j) sum += row.weight[j];
  return sum;
}

long long n_kept(const Sorted& row, const Plan& plan, double total) {
  double sum = 0;
  for (long long j = 0; j < plan.n_candidates; ++j) {
    if (j > 0 && (row.weight[j] < plan.min_p || row.weight[j] == 0)) return j;
    sum += row.weight[j];
    if (plan.top_p < 1 && sum >= plan.top_p * total) return j + 1;
  }
  return plan.n_candidates;
}

long long draw(const Sorted& row, const Plan& plan, double row_mass) {
  const double total = plan.limited ? sum_of_first(row, plan.n_candidates) : row_mass;
  const long long kept = n_kept(row, plan, total);
  const double target = plan.u * (plan.cuts() ? sum_of_first(row, kept) : row_mass);
  double sum = 0;
  for (long long j = 0; j < kept; ++j) {
    sum += row.weight[j];
    if (sum > target) return j;
  }
  return kept - 1;
}

void sample_row(const Args& a, long long r, const Sorted& row) {
  for (int i = 0; i < row.n; ++i) row.at[i] = {topk::key_of(row.x[i]), i};
  std::sort(row.at, row.at + row.n, topk::before);
  const float largest = row.x[row.at[0].index];
  const Plan plan = plan_of(a, r);
  long long chosen = 0;
  if (!plan.greedy && std::isfinite(largest)) {
    for (long long j = 0; j < row.n; ++j) {
      const float x = row.x[row.at[j].index];
      row.weight[j] = x == x ? math::exp((x - largest) * plan.scale) : 0.0f;
    }
    chosen = draw(row, plan, mass(row.x, row.n, largest, plan.scale));
  }
  a.token[r] = row.at[chosen].index;
  if (a.logprob == nullptr) return;
  a.logprob[r] = logprob_of(row.x[a.token[r]], largest, mass(row.x, row.n, largest, 1.0f));
}

}  // namespace

size_t workspace_bytes(const Args& a, int) {
  return static_cast<size_t>(a.n) * (sizeof(Candidate) + sizeof(float));
}

Status run(const Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  auto* at = reinterpret_cast<Candidate*>(exec.workspace);
  auto* weight = reinterpret_cast<float*>(at + a.n);
  for (long long r = 0; r < a.n_rows; ++r) sample_row(a, r, {a.logits + r * a.n, at, weight, a.n});
  return {};
}

}  // namespace millrace::sample::reference
