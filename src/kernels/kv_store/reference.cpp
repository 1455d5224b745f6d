#include "kernels/kv_store/op.h"
#include "tensor/element.h"

namespace millrace::kv_store::reference {
namespace {

void store_head(const Args& a, long long r, long long h) {
  const long long page = a.slots[r] / a.page_tokens, place = a.slots[r] % a.page_tokens;
  const long long block = page * a.page_stride + h * a.head_dim * a.page_tokens;
  for (long long d = 0; d < a.head_dim; ++d) {
    const long long from = r * a.x_stride + h * a.head_dim + d;
    if (a.what != Stored::values)
      store_element(a.kv_type, a.k_pages, block + d * a.page_tokens + place,
                    load_element(a.x_type, a.k, from));
    if (a.what != Stored::keys)
      store_element(a.kv_type, a.v_pages, block + place * a.head_dim + d,
                    load_element(a.x_type, a.v, from));
  }
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  const Share columns = exec.columns(a.n_kv_heads * a.head_dim);
  for (long long r = 0; r < a.n_rows; ++r)
    for (long long at = columns.begin; at < columns.end && a.slots[r] >= 0; at += a.head_dim)
      store_head(a, r, at / a.head_dim);
  return {};
}

}  // namespace millrace::kv_store::reference
