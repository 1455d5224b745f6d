#include <algorithm>

#include "kernels/embedding/op.h"
#include "tensor/codec.h"
#include "tensor/format.h"

namespace millrace::embedding::reference {

Status run(const Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  const auto row_bytes = static_cast<long long>(bytes_of(a.table_type, a.n));
  for (long long r = 0; r < a.n_rows; ++r) {
    const long long id = a.ids[r];
    if (id >= 0 && id < a.n_vocab)
      decode(a.table_type, static_cast<const char*>(a.table) + id * row_bytes, a.y + r * a.n, a.n);
    else
      std::fill_n(a.y + r * a.n, a.n, 0.0f);
  }
  return {};
}

}  // namespace millrace::embedding::reference
