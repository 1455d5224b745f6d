// A lane's share of the elements as runs that are contiguous in a, b and y: one where b has a row
// for every row, one per row or part of it where b is a bias.
#pragma once

#include <algorithm>

#include "kernels/add/args.h"
#include "kernels/kernel.h"

namespace millrace::add {

template <class Add>
void for_each_run(const Args& a, const Exec& exec, Add add) {
  const Share share = exec.share(a.n_rows * a.n, 16);
  if (!a.is_bias)
    return add(a.a + share.begin, a.b + share.begin, a.y + share.begin, share.end - share.begin);
  for (long long i = share.begin; i < share.end;) {
    const long long at = i % a.n, n = std::min<long long>(a.n - at, share.end - i);
    add(a.a + i, a.b + at, a.y + i, n);
    i += n;
  }
}

}  // namespace millrace::add
