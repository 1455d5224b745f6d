#include "lab/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"

namespace millrace::lab {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// ln of the probability of exactly k heads in n fair throws.
double log_binomial(int n, int k) {
  return std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) - n * std::log(2.0);
}

// The largest k for which [x_k, x_(n+1-k)], counting from 1, misses the median with probability at
// most alpha: twice the chance of fewer than k of n samples below it. 0 when there is none.
int interval_rank(int n, double alpha) {
  double tail = 0;
  for (int k = 0; k < n / 2; ++k) {
    tail += std::exp(log_binomial(n, k));
    if (2 * tail > alpha) return k;
  }
  return n / 2;
}

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> x(samples.begin(), samples.end());
  std::sort(x.begin(), x.end());
  return x;
}

double middle(const std::vector<double>& x) {
  const size_t n = x.size();
  return n % 2 == 1 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

std::vector<double> log_ratios(std::span<const double> a, std::span<const double> b) {
  MILLRACE_CHECK(a.size() == b.size(), "{} samples against {}", a.size(), b.size());
  std::vector<double> out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = std::log(b[i] / a[i]);
  return out;
}

}  // namespace

bool Interval::finite() const {
  return std::isfinite(lo) && std::isfinite(hi);
}

double Interval::relative_width() const {
  return finite() && mid != 0 ? 0.5 * (hi - lo) / std::fabs(mid) : kInf;
}

double median(std::span<const double> samples) {
  MILLRACE_CHECK(!samples.empty(), "the median of nothing");
  return middle(sorted(samples));
}

Interval median_interval(std::span<const double> samples, double alpha) {
  if (samples.empty()) return {-kInf, 0, kInf};
  const std::vector<double> x = sorted(samples);
  const int rank = interval_rank(static_cast<int>(x.size()), alpha);
  if (rank == 0) return {-kInf, middle(x), kInf};
  const auto k = static_cast<size_t>(rank);
  return {x[k - 1], middle(x), x[x.size() - k]};
}

int least_samples(double alpha) {
  int n = 2;
  while (interval_rank(n, alpha) == 0) ++n;
  return n;
}

std::string_view name_of(Speed speed) {
  switch (speed) {
    case Speed::fast:
      return "FAST";
    case Speed::slow:
      return "SLOW";
    case Speed::same:
      return "SAME";
    case Speed::ambiguous:
      return "AMBIGUOUS";
  }
  return "unknown";
}

Speed judge(const Interval& log_ratio, double min_effect) {
  if (!log_ratio.finite()) return Speed::ambiguous;
  if (log_ratio.hi < -min_effect) return Speed::fast;
  if (log_ratio.lo > min_effect) return Speed::slow;
  if (min_effect <= kMostForSame && log_ratio.lo >= -min_effect && log_ratio.hi <= min_effect)
    return Speed::same;
  return Speed::ambiguous;
}

Comparison compare_paired(std::span<const double> a, std::span<const double> b, double alpha,
                          double min_effect) {
  const Interval ratio = median_interval(log_ratios(a, b), alpha);
  return {ratio, judge(ratio, min_effect)};
}

Comparison compare_unpaired(std::span<const double> a, std::span<const double> b, double alpha,
                            double min_effect) {
  // Each misses with at most alpha / 2, so both hold with 1 - alpha.
  const Interval ia = median_interval(a, alpha / 2), ib = median_interval(b, alpha / 2);
  Interval ratio{-kInf, 0, kInf};
  if (ia.mid > 0 && ib.mid > 0) ratio.mid = std::log(ib.mid / ia.mid);
  if (ia.finite() && ib.finite()) {
    ratio.lo = std::log(ib.lo / ia.hi);
    ratio.hi = std::log(ib.hi / ia.lo);
  }
  return {ratio, judge(ratio, min_effect)};
}

double noise_of(std::span<const double> a, std::span<const double> twin) {
  const Interval ratio = median_interval(log_ratios(a, twin), 0.05);
  return std::max(std::fabs(ratio.lo), std::fabs(ratio.hi));
}

double min_effect_of(double noise) {
  return std::max(kLeastEffect, noise);
}

}  // namespace millrace::lab
