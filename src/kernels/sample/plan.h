// One row's parameters, resolved: what the args' arrays mean for it. Shared by all variants; the
// arithmetic of the class is in op.h.
#pragma once

#include <cmath>
#include <limits>

#include "base/math.h"
#include "base/philox.h"
#include "kernels/sample/args.h"

namespace millrace::sample {

struct Plan {
  bool greedy;
  float scale;             // 1 / temperature
  bool limited;            // by top_k
  long long n_candidates;  // top_k, or n
  double top_p;            // 1: off
  float min_p;             // 0: off
  double u;                // the draw, in [0, 1)

  bool cuts() const { return limited || top_p < 1 || min_p > 0; }
};

// Any bits are safe here: what makes no sense (NaN, negative, out of range) switches its rule off.
inline Plan plan_of(const Args& a, long long r) {
  Plan plan;
  plan.scale = 1.0f / a.temperature[r];
  plan.greedy = !(a.temperature[r] > 0) || !std::isfinite(plan.scale) || plan.scale == 0;
  plan.limited = a.top_k[r] >= 1 && a.top_k[r] < a.n;
  plan.n_candidates = plan.limited ? a.top_k[r] : a.n;
  plan.top_p = a.top_p[r] < 1 ? a.top_p[r] : 1.0f;
  plan.min_p = a.min_p[r] > 0 ? a.min_p[r] : 0.0f;
  plan.u = philox_uniform(a.seed[r], a.position[r]);
  return plan;
}

// Of a logit, given the row's largest and its mass at temperature 1.
inline float logprob_of(float x, float largest, double mass) {
  if (!std::isfinite(largest)) return std::numeric_limits<float>::quiet_NaN();
  return (x - largest) - math::log(static_cast<float>(mass));
}

}  // namespace millrace::sample
