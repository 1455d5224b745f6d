// Statistics of timings. Nothing here assumes a distribution: a median's interval comes from order
// statistics, two variants are compared by the sign test on paired log-ratios, and no winner is
// declared without an interval that excludes the noise.
#pragma once

#include <span>
#include <string_view>

namespace millrace::lab {

// A median and an interval that holds it with probability 1 - alpha. Too few samples for that
// confidence give an infinite interval.
struct Interval {
  double lo = 0, mid = 0, hi = 0;

  bool finite() const;
  // Half its width, relative to its middle.
  double relative_width() const;
};

double median(std::span<const double> samples);
Interval median_interval(std::span<const double> samples, double alpha = 0.05);

// The least number of samples that gives a finite interval at alpha.
int least_samples(double alpha);

enum class Speed { fast, slow, same, ambiguous };
std::string_view name_of(Speed speed);  // FAST, SLOW, SAME, AMBIGUOUS

// How B compares with A: the interval of ln(time of B / time of A), negative when B is faster.
struct Comparison {
  Interval log_ratio;
  Speed speed = Speed::ambiguous;
};

// On a machine noisier than this nothing is called the same.
inline constexpr double kMostForSame = 0.05;

// fast: the whole interval is below -min_effect; slow: above +min_effect; same: inside the two and
// min_effect small; ambiguous: everything else. min_effect is in log-ratio (0.005 is 0.5 %).
Speed judge(const Interval& log_ratio, double min_effect);

// Samples taken in the same rounds, a[i] and b[i] of round i. Times must be positive.
Comparison compare_paired(std::span<const double> a, std::span<const double> b, double alpha,
                          double min_effect);
// Samples of different runs: from the two medians' intervals, which is more cautious.
Comparison compare_unpaired(std::span<const double> a, std::span<const double> b, double alpha,
                            double min_effect);

// What two runs of the very same thing, in the same rounds, may differ by (in log-ratio).
double noise_of(std::span<const double> a, std::span<const double> twin);

// The least difference that counts: half a percent, or the noise where that is larger.
inline constexpr double kLeastEffect = 0.005;
double min_effect_of(double noise);

}  // namespace millrace::lab
