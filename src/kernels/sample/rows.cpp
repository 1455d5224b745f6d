#include "kernels/sample/rows.h"

#include <algorithm>

#include "base/math.h"
#include "kernels/sample/plan.h"
#include "kernels/topk/row.h"

namespace millrace::sample {
namespace {

constexpr long long kFirst = 256, kGrowth = 8;
constexpr long long kMore = -1;

struct Scratch {
  float *values, *weights;
  int* indices;
  int32_t* selection;

  static long long words(long long n) {
    return 2 * ((3 * n + 1) / 2) + topk::avx2::scratch_words_for_any_k(n);
  }
  static Scratch at(const Args& a, const Exec& exec) {
    auto* begin = reinterpret_cast<float*>(exec.workspace) + exec.lane * words(a.n);
    return {begin, begin + a.n, reinterpret_cast<int*>(begin + 2 * a.n),
            reinterpret_cast<int32_t*>(begin + 2 * ((3 * a.n + 1) / 2))};
  }
};

// The candidates known so far.
struct Prefix {
  const float* weights;
  long long n;
  bool whole;  // there are no more
};

struct Kept {
  long long n;
  double mass;
};

// Where the list ends; n is kMore when the prefix does not tell.
Kept keep(const Prefix& prefix, const Plan& plan, double total) {
  double sum = 0;
  for (long long j = 0; j < prefix.n; ++j) {
    const float w = prefix.weights[j];
    if (j > 0 && (w < plan.min_p || w == 0)) return {j, sum};
    sum += w;
    if (plan.top_p < 1 && sum >= plan.top_p * total) return {j + 1, sum};
  }
  return {prefix.whole ? prefix.n : kMore, sum};
}

double sum_of(const Prefix& prefix) {
  double sum = 0;
  for (long long j = 0; j < prefix.n; ++j) sum += prefix.weights[j];
  return sum;
}

// The chosen candidate, or kMore.
long long draw(const Prefix& prefix, const Plan& plan, double row_mass) {
  const Kept kept = keep(prefix, plan, plan.limited ? sum_of(prefix) : row_mass);
  if (plan.cuts() && kept.n == kMore) return kMore;
  const double target = plan.u * (plan.cuts() ? kept.mass : row_mass);
  const long long n = kept.n == kMore ? prefix.n : kept.n;
  double sum = 0;
  for (long long j = 0; j < n; ++j) {
    sum += prefix.weights[j];
    if (sum > target) return j;
  }
  return kept.n == kMore ? kMore : n - 1;
}

struct Sampler {
  const Args& a;
  const Scratch& s;
  Mass mass;

  const float* logits(long long r) const { return a.logits + r * a.n; }

  void select(long long r, long long k) const {
    topk::avx2::select_row({logits(r), a.n, k, s.values, s.indices}, s.selection);
  }

  // A candidate's place in the sorted list, of which the first k are there.
  long long choose(long long r, const Plan& plan, long long k, double row_mass) const {
    const float largest = s.values[0];
    for (;;) {
      for (long long j = 0; j < k; ++j) {
        const float x = s.values[j];
        s.weights[j] = x == x ? math::exp((x - largest) * plan.scale) : 0.0f;
      }
      const long long chosen = draw({s.weights, k, k == plan.n_candidates}, plan, row_mass);
      if (chosen != kMore) return chosen;
      k = std::min(k * kGrowth, plan.n_candidates);
      select(r, k);
    }
  }

  // The sums over the row are most of the work, so each is made only where it is used.
  void run(long long r) const {
    const Plan plan = plan_of(a, r);
    const long long k = first_k(plan);
    select(r, k);
    const float largest = s.values[0];
    const bool draws = !plan.greedy && std::isfinite(largest);
    const bool uses_mass = draws && !plan.limited;
    const double row_mass = uses_mass ? mass(logits(r), a.n, largest, plan.scale) : 0;
    const long long chosen = draws ? choose(r, plan, k, row_mass) : 0;
    a.token[r] = s.indices[chosen];
    if (a.logprob == nullptr) return;
    const bool same = uses_mass && plan.scale == 1.0f;
    const double whole = same ? row_mass : mass(logits(r), a.n, largest, 1.0f);
    a.logprob[r] = logprob_of(s.values[chosen], largest, whole);
  }

  long long first_k(const Plan& plan) const {
    if (plan.greedy) return 1;
    return plan.limited ? plan.n_candidates : std::min(kFirst, a.n);
  }
};

}  // namespace

size_t rows_workspace_bytes(const Args& a, int n_lanes) {
  return static_cast<size_t>(Scratch::words(a.n) * n_lanes) * sizeof(float);
}

Status run_rows(const Args& a, Exec& exec, Mass mass) {
  const Scratch scratch = Scratch::at(a, exec);
  const Share rows = exec.share(a.n_rows);
  const Sampler sampler = {a, scratch, mass};
  for (long long r = rows.begin; r < rows.end; ++r) sampler.run(r);
  return {};
}

}  // namespace millrace::sample
