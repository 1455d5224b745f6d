// A lane's part of an elementwise call over n_rows rows of n, as runs of neighbouring elements: one
// where the part is whole rows, else one a row.
#pragma once

#include "kernels/kernel.h"

namespace millrace {

// Calls each(first, n): elements [first, first + n) of the rows one after the other.
template <class Each>
void for_each_run(const Exec& exec, int64_t n_rows, int64_t n, Each each) {
  const Share rows = exec.rows(n_rows), columns = exec.columns(n);
  if (columns.begin >= columns.end) return;
  if (columns.end - columns.begin == n) return each(rows.begin * n, (rows.end - rows.begin) * n);
  for (int64_t r = rows.begin; r < rows.end; ++r)
    each(r * n + columns.begin, columns.end - columns.begin);
}

}  // namespace millrace
