// The definition of op.h in plain loops over the whole sorted row. The weights are the class's own
// f32 values and the sums run in its order, so that the choice, which is discrete, is the same.
#include <algorithm>

#include "base/math.h"
#include "kernels/sample/op.h"
#include "kernels/sample/plan.h"
#include "kernels/topk/order.h"

namespace millrace::sample::reference {
namespace {

using topk::Candidate;

struct Scratch {
  Candidate* at;  // [n], in topk's order
  float* y;       // [n], the edited logits
  float* weight;  // [n], of at[j]
};

double block_sum(const float* x, long long n, float largest, float scale) {
  double lanes[16] = {};
  for (long long i = 0; i < n; ++i) lanes[i % 16] += math::exp((x[i] - largest) * scale);
  for (int half = 8; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  return lanes[0];
}

double mass(const float* x, long long n, float largest, float scale) {
  double sum = 0;
  for (long long i = 0; i < n; i += kBlock)
    sum += block_sum(x + i, std::min(kBlock, n - i), largest, scale);
  return sum;
}

void sort(const float* x, long long n, Candidate* at) {
  for (int i = 0; i < n; ++i) at[i] = {topk::key_of(x[i]), i};
  std::sort(at, at + n, topk::before);
}

bool is_usable(const float* x, long long n) {
  float largest = kNever;
  for (long long i = 0; i < n; ++i) {
    if (!(x[i] <= kMostFloat)) return false;
    largest = std::max(largest, x[i]);
  }
  return largest > kNever;
}

double sum_of_first(const float* weight, long long n) {
  Running running;
  for (long long j = 0; j < n; ++j) running.add(weight[j]);
  return running.sum();
}

long long n_kept(const float* weight, const Plan& plan, double total) {
  Running running;
  for (long long j = 0; j < plan.n_candidates; ++j) {
    if (j > 0 && (weight[j] < plan.min_p || weight[j] == 0)) return j;
    const double sum = running.add(weight[j]);
    if (plan.top_p < 1 && sum >= plan.top_p * total) return j + 1;
  }
  return plan.n_candidates;
}

long long draw(const float* weight, const Plan& plan, double row_mass) {
  const double total = plan.limited ? sum_of_first(weight, plan.n_candidates) : row_mass;
  const long long kept = n_kept(weight, plan, total);
  const double target = plan.u * (plan.cuts() ? sum_of_first(weight, kept) : row_mass);
  Running running;
  for (long long j = 0; j < kept; ++j)
    if (running.add(weight[j]) > target) return j;
  return kept - 1;
}

int choose(const Plan& plan, long long n, const Scratch& s) {
  sort(s.y, n, s.at);
  const float largest = s.y[s.at[0].index];
  if (largest == kNever) return kNoneAllowed;
  if (plan.greedy) return s.at[0].index;
  for (long long j = 0; j < n; ++j)
    s.weight[j] = math::exp((s.y[s.at[j].index] - largest) * plan.scale);
  return s.at[draw(s.weight, plan, mass(s.y, n, largest, plan.scale))].index;
}

void put_logprobs(const Args& a, long long r, const Plan& plan, const Scratch& s) {
  sort(plan.logits, a.n, s.at);
  const float largest = plan.logits[s.at[0].index];
  const double whole = mass(plan.logits, a.n, largest, 1.0f);
  if (a.token[r] >= 0) a.logprob[r] = logprob_of(plan.logits[a.token[r]], largest, whole);
  for (long long j = 0; j < plan.n_top; ++j) {
    a.top_token[r * a.max_top + j] = s.at[j].index;
    a.top_logprob[r * a.max_top + j] = logprob_of(plan.logits[s.at[j].index], largest, whole);
  }
}

void sample_row(const Args& a, long long r, const Scratch& s) {
  const Plan plan = plan_of(a, r);
  put_nothing(a, r, kNotFinite);
  if (!is_usable(plan.logits, a.n)) return;
  const Edits edits = edits_of(a, r);
  for (long long i = 0; i < a.n; ++i) s.y[i] = edits.allows(i) ? plan.logits[i] : kNever;
  apply_lists(a, edits, {0, a.n}, s.y);
  a.token[r] = choose(plan, a.n, s);
  if (plan.wants_logprob) put_logprobs(a, r, plan, s);
}

}  // namespace

size_t workspace_bytes(const Args& a, int) {
  return static_cast<size_t>(a.n) * (sizeof(Candidate) + 2 * sizeof(float));
}

Status run(const Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  auto* at = reinterpret_cast<Candidate*>(exec.workspace);
  auto* y = reinterpret_cast<float*>(at + a.n);
  for (long long r = 0; r < a.n_rows; ++r) sample_row(a, r, {at, y, y + a.n});
  return {};
}

}  // namespace millrace::sample::reference
