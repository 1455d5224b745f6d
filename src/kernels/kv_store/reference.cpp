#include "kernels/kv_store/op.h"
#include "tensor/element.h"

namespace millrace::kv_store::reference {
namespace {

void store_head(const Args& a, long long r, long long h) {
  const long long page = a.slots[r] / a.page_tokens, place = a.slots[r] % a.page_tokens;
  const long long block = page * a.page_stride + h * a.head_dim * a.page_tokens;
  for (long long d = 0; d < a.head_dim; ++d) {
    const long long from = r * a.x_stride + h * a.head_dim + d;
    store_element(a.kv_type, a.k_pages, block + d * a.page_tokens + place,
                  load_element(a.x_type, a.k, from));
    store_element(a.kv_type, a.v_pages, block + place * a.head_dim + d,
                  load_element(a.x_type, a.v, from));
  }
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  if (exec.lane != 0) return {};
  for (long long r = 0; r < a.n_rows; ++r)
    for (long long h = 0; h < a.n_kv_heads && a.slots[r] >= 0; ++h) store_head(a, r, h);
  return {};
}

}  // namespace millrace::kv_store::reference
