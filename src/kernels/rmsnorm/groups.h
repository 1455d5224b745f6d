// A lane's part of a norm: some rows, or some groups of every row.
#pragma once

#include "kernels/kernel.h"
#include "kernels/rmsnorm/args.h"

namespace millrace::rmsnorm {

// Calls each(g) with the place of a group among all groups of all rows.
template <class Each>
void for_each_group(const Args& a, const Exec& exec, Each each) {
  const Share rows = exec.rows(a.n_rows), columns = exec.columns(a.n_groups * a.n);
  for (long long r = rows.begin; r < rows.end; ++r)
    for (long long g = columns.begin / a.n; g < columns.end / a.n; ++g) each(r * a.n_groups + g);
}

}  // namespace millrace::rmsnorm
