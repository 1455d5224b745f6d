#include "engine/gaps.h"

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

constexpr double kFirst = 0.125;  // seconds
// What was seen counts half when there is more of it: habits change.
constexpr double kMostSeen = 1000;

constexpr std::array<double, Gaps::kBuckets + 1> kStarts = [] {
  std::array<double, Gaps::kBuckets + 1> out = {0, kFirst, kFirst * 1.4142135623730951};
  for (size_t i = 3; i < out.size(); ++i) out[i] = 2 * out[i - 2];
  return out;
}();

double end_of(int bucket) {
  return Gaps::start_of(bucket + 1);
}

// Of those still away at_s, who come back before the bucket's end: its hazard's part.
double hazard_of_rest(const Gaps::Hazards& hazards, int bucket, double at_s) {
  const double hazard = hazards[static_cast<size_t>(bucket)], start_s = Gaps::start_of(bucket);
  if (at_s <= start_s) return hazard;
  return 1 - std::pow(1 - hazard, (end_of(bucket) - at_s) / (end_of(bucket) - start_s));
}

}  // namespace

double Gaps::start_of(int bucket) {
  return kStarts[static_cast<size_t>(bucket)];
}

int Gaps::bucket_of(double seconds) {
  if (!(seconds >= kFirst)) return 0;
  if (seconds >= start_of(kBuckets - 1)) return kBuckets - 1;
  int bucket = std::min(kBuckets - 1, 1 + static_cast<int>(2 * std::log2(seconds / kFirst)));
  while (bucket + 1 < kBuckets && seconds >= start_of(bucket + 1)) ++bucket;
  while (seconds < start_of(bucket)) --bucket;
  return bucket;
}

void Gaps::count(int bucket) {
  at_risk_[static_cast<size_t>(bucket)] += 1;
  if (at_risk_[0] <= kMostSeen) return;
  for (double& n : at_risk_) n /= 2;
  for (double& n : returned_) n /= 2;
}

void Gaps::passed(int bucket) {
  count(bucket);
}

void Gaps::returned(int bucket) {
  returned_[static_cast<size_t>(bucket)] += 1;
  count(bucket);
}

Gaps::Hazards Gaps::hazards(const Hazards& before, double weight) const {
  Hazards out;
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = (returned_[i] + weight * before[i]) / (at_risk_[i] + weight);
  return out;
}

double return_rate(const Gaps::Hazards& hazards, double away_s) {
  double best = 0, away = 1, returns = 0, waited_s = 0;
  double at_s = away_s;
  for (int i = Gaps::bucket_of(away_s); i < Gaps::kBuckets; ++i) {
    const double left_s = end_of(i) - at_s;
    if (left_s <= 0) break;  // longer than the table
    const double hazard = hazard_of_rest(hazards, i, at_s);
    returns += away * hazard;
    waited_s += away * left_s * (1 - hazard / 2);
    away *= 1 - hazard;
    at_s = end_of(i);
    best = std::max(best, returns / waited_s);
  }
  return best;
}

double return_chance(const Gaps::Hazards& hazards, double away_s, double within_s) {
  double away = 1;
  double at_s = away_s;
  const double until_s = away_s + within_s;
  for (int i = Gaps::bucket_of(away_s); i < Gaps::kBuckets && at_s < until_s; ++i) {
    const double to_s = std::min(end_of(i), until_s);
    if (to_s <= at_s) break;
    const double whole_s = end_of(i) - Gaps::start_of(i);
    away *= std::pow(1 - hazards[static_cast<size_t>(i)], (to_s - at_s) / whole_s);
    at_s = to_s;
  }
  return 1 - away;
}

Gaps::Hazards assumed_hazards(double share, double median_s, double sigma) {
  const auto returned_by = [&](double s) {
    return s <= 0 ? 0 : share * 0.5 * std::erfc(-std::log(s / median_s) / (sigma * std::sqrt(2.0)));
  };
  Gaps::Hazards out;
  for (int i = 0; i < Gaps::kBuckets; ++i) {
    const double before = returned_by(Gaps::start_of(i));
    out[static_cast<size_t>(i)] = (returned_by(end_of(i)) - before) / (1 - before);
  }
  return out;
}

}  // namespace millrace
