// A lane's share of the elements as runs that are contiguous in a, b and y, all f32: one where b
// has a row for every row, one per row or part of it where b is a bias.
#pragma once

#include <algorithm>

#include "kernels/add/args.h"
#include "kernels/kernel.h"

namespace millrace::add {

template <class Add>
void for_each_run(const Args& args, const Exec& exec, Add add) {
  const auto *a = static_cast<const float*>(args.a), *b = static_cast<const float*>(args.b);
  auto* y = static_cast<float*>(args.y);
  const Share share = exec.share(args.n_rows * args.n, 16);
  if (!args.is_bias)
    return add(a + share.begin, b + share.begin, y + share.begin, share.end - share.begin);
  for (long long i = share.begin; i < share.end;) {
    const long long at = i % args.n, n = std::min<long long>(args.n - at, share.end - i);
    add(a + i, b + at, y + i, n);
    i += n;
  }
}

}  // namespace millrace::add
