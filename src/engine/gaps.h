// How long clients stay away: a life table over buckets of half an octave. Each bucket counts who
// was still away at its start and who came back in it, so those who have not come back yet count as
// far as they have waited.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace {

class Gaps {
 public:
  // The first ends at 1/8 s, the last at 36 hours; who stays away longer stays away.
  static constexpr int kBuckets = 41;
  static double start_of(int bucket);
  static int bucket_of(double seconds);

  // Chance to come back in each bucket, of those who were away at its start.
  using Hazards = std::array<double, kBuckets>;

  void passed(int bucket);    // somebody waited through it
  void returned(int bucket);  // somebody came back in it
  // Where little was seen, `before` counts like so many who were seen.
  Hazards hazards(const Hazards& before, double weight) const;
  double n_seen() const { return at_risk_[0]; }
  double n_returned(int bucket) const { return returned_[static_cast<size_t>(bucket)]; }

 private:
  void count(int bucket);

  std::array<double, kBuckets> at_risk_ = {}, returned_ = {};
};

// Of a client that has been away for so long: the most returns per second of waiting for it, over
// all times at which one could give up. This is Gittins' index; keeping what has the most of it
// saves the most.
double return_rate(const Gaps::Hazards& hazards, double away_s);
// The chance that it is back within so many seconds from now.
double return_chance(const Gaps::Hazards& hazards, double away_s, double within_s);

// Where nothing was seen: this share comes back, half of them within `median_s`, log-normally.
Gaps::Hazards assumed_hazards(double share, double median_s, double sigma);

}  // namespace millrace
