// A lane's part of the elements as runs that are contiguous in a, b and y, all f32.
#pragma once

#include <algorithm>

#include "kernels/add/args.h"
#include "kernels/runs.h"

namespace millrace::add {

// Calls add(a, b, y, n); a bias ends with its row, and so does a run then.
template <class Add>
void for_each_sum(const Args& args, const Exec& exec, Add add) {
  const auto *a = static_cast<const float*>(args.a), *b = static_cast<const float*>(args.b);
  auto* y = static_cast<float*>(args.y);
  for_each_run(exec, args.n_rows, args.n, [&](int64_t first, int64_t n) {
    if (!args.is_bias) return add(a + first, b + first, y + first, n);
    for (int64_t i = first, end = first + n; i < end;) {
      const int64_t at = i % args.n, length = std::min<int64_t>(args.n - at, end - i);
      add(a + i, b + at, y + i, length);
      i += length;
    }
  });
}

}  // namespace millrace::add
