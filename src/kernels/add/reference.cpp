#include "kernels/add/op.h"

namespace millrace::add::reference {

Status run(const Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  for (long long i = 0; i < a.n_rows * a.n; ++i) a.y[i] = a.a[i] + a.b[i];
  return {};
}

}  // namespace millrace::add::reference
