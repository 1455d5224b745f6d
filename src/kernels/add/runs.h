// A lane's part of the elements as runs that are contiguous in a, b and y.
#pragma once

#include <algorithm>

#include "kernels/add/args.h"
#include "kernels/runs.h"

namespace millrace::add {

// Calls add(a, b, y, n); a bias ends with its row, and so does a run then.
template <class Add>
void for_each_sum(const Args& a, const Exec& exec, Add add) {
  for_each_run(exec, a.n_rows, a.n, [&](int64_t first, int64_t n) {
    if (!a.is_bias) return add(a.a + first, a.b + first, a.y + first, n);
    for (int64_t i = first, end = first + n; i < end;) {
      const int64_t at = i % a.n, length = std::min<int64_t>(a.n - at, end - i);
      add(a.a + i, a.b + at, a.y + i, length);
      i += length;
    }
  });
}

}  // namespace millrace::add
