#include "kernels/sample/ranked.h"

#include <algorithm>

#include "kernels/topk/row.h"

namespace millrace::sample {

long long RankedMemory::selection_words(long long n) {
  return topk::avx2::scratch_words_up_to(n, std::min(n, kMostAtOnce));
}

void Ranked::extend(float* y, long long n) {
  for (; n_taken_ < n_; ++n_taken_) y[memory_.indices[n_taken_]] = kNever;
  const long long k = std::min({3 * n_, kMostAtOnce, plan_.n_candidates - n_});
  topk::avx2::select_row({y, n, k, memory_.weights + n_, memory_.indices + n_}, memory_.selection);
  n_ += k;
}

void Ranked::weigh() {
  passes_.soften(memory_.weights + n_weighed_, n_ - n_weighed_, largest_, plan_.scale);
  n_weighed_ = n_;
}

double Ranked::sum_of_all() const {
  Running running;
  for (long long j = 0; j < n_; ++j) running.add(memory_.weights[j]);
  return running.sum();
}

Ranked::Kept Ranked::keep(double total) const {
  Running running;
  for (long long j = 0; j < n_; ++j) {
    const float w = memory_.weights[j];
    if (j > 0 && (w < plan_.min_p || w == 0)) return {j, running.sum()};
    const double sum = running.add(w);
    if (plan_.top_p < 1 && sum >= plan_.top_p * total) return {j + 1, sum};
  }
  return {is_whole() ? n_ : kMore, running.sum()};
}

int Ranked::draw(double row_mass) {
  weigh();
  if (plan_.limited && !is_whole()) return -1;
  const Kept kept = keep(plan_.limited ? sum_of_all() : row_mass);
  if (plan_.cuts() && kept.n == kMore) return -1;
  const double target = plan_.u * (plan_.cuts() ? kept.mass : row_mass);
  const long long n = kept.n == kMore ? n_ : kept.n;
  Running running;
  for (long long j = 0; j < n; ++j)
    if (running.add(memory_.weights[j]) > target) return memory_.indices[j];
  return kept.n == kMore ? -1 : memory_.indices[n - 1];
}

}  // namespace millrace::sample
