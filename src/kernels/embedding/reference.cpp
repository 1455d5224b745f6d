#include <algorithm>

#include "kernels/embedding/op.h"
#include "tensor/codec.h"
#include "tensor/format.h"

namespace millrace::embedding::reference {

Status run(const Args& a, Exec& exec) {
  const auto row_bytes = static_cast<long long>(bytes_of(a.table_type, a.n));
  const Share rows = exec.rows(a.n_rows);
  for (long long r = rows.begin; r < rows.end; ++r) {
    const long long id = a.ids[r];
    float* y = a.y + r * a.n;
    if (id < 0 || id >= a.n_vocab) {
      std::fill_n(y, a.n, 0.0f);
      continue;
    }
    decode(a.table_type, static_cast<const char*>(a.table) + id * row_bytes, y, a.n);
    for (long long i = 0; i < a.n && a.scale != 1; ++i) y[i] *= a.scale;
  }
  return {};
}

}  // namespace millrace::embedding::reference
