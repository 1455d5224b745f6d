// A row's candidates in topk's order, as many as its draw has asked for: sorted in descending
// order, the first 256 hold nearly all of a language model's mass, so that a draw seldom needs
// more, and a longer list continues the shorter.
#pragma once

#include <cstdint>

#include "kernels/sample/plan.h"
#include "kernels/sample/rows.h"

namespace millrace::sample {

inline constexpr long long kFirst = 256;        // candidates at first
inline constexpr long long kMostAtOnce = 4096;  // that one selection adds

// A lane's own memory.
struct RankedMemory {
  float* weights;      // [n]
  int* indices;        // [n]
  int32_t* selection;  // topk's scratch

  static long long selection_words(long long n);
};

class Ranked {
 public:
  Ranked(const Plan& plan, const Passes& passes, float largest, const RankedMemory& memory)
      : plan_(plan), passes_(passes), largest_(largest), memory_(memory) {}

  // The next candidate, of logit y.
  void push(float y, int index) {
    memory_.weights[n_] = y;
    memory_.indices[n_++] = index;
  }
  // Adds the candidates that follow those here, of the edited logits y; overwrites y.
  void extend(float* y, long long n);

  // The token drawn, or -1 when it takes more candidates than are here. row_mass is the sum of
  // weights over the vocabulary; not read where top-k limits.
  int draw(double row_mass);

 private:
  struct Kept {
    long long n;  // or kMore: the list does not end here
    double mass;
  };
  static constexpr long long kMore = -1;

  bool is_whole() const { return n_ == plan_.n_candidates || memory_.weights[n_ - 1] == 0; }
  double sum_of_all() const;
  Kept keep(double total) const;
  void weigh();

  const Plan& plan_;
  const Passes& passes_;
  const float largest_;
  const RankedMemory memory_;
  long long n_ = 0, n_weighed_ = 0, n_taken_ = 0;
};

}  // namespace millrace::sample
