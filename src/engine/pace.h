// How long a step will take, from what those before it took. A row's work grows with the context
// it stands after: all of it is counted in rows at the beginning of one.
#pragma once

#include <cstdint>

#include "model/config.h"

namespace millrace {

class Pace {
 public:
  explicit Pace(const Config& config);

  double work(int64_t position) const;
  // Of n rows from this position on.
  double work(int64_t position, int64_t n) const;
  // How many rows from this position on, of n at most, are no more than so much work.
  int64_t fitting(int64_t position, int64_t n, double work) const;
  void learn(double work, double seconds);
  // What so much time is enough for; before anything was learned a guess.
  double work_in(double seconds) const;

 private:
  double context_rows_ = 1;  // a context of so many tokens costs as much as the rest of a row
  double windowed_ = 0;      // of the layers, which see no more than the window
  int64_t window_ = 0;
  double seconds_ = 0;  // of a row's work, lately; 0: not known
};

}  // namespace millrace
