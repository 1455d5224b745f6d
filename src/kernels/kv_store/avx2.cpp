#include <immintrin.h>

#include "base/isa.h"
#include "kernels/kv_store/op.h"

MILLRACE_TARGET_AVX2
namespace millrace::kv_store::avx2 {
namespace {

__m128i round8(const float* x) {
  return _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT);
}

void store8(uint16_t* to, __m128i x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), x);
}

// x[i] is row i of an 8 by 8 matrix; afterwards column i.
void transpose8(__m128i (&x)[8]) {
  __m128i a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm_unpacklo_epi16(x[i], x[i + 4]);
    a[2 * i + 1] = _mm_unpackhi_epi16(x[i], x[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    b[2 * i] = _mm_unpacklo_epi16(a[i], a[i + 4]);
    b[2 * i + 1] = _mm_unpackhi_epi16(a[i], a[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = _mm_unpacklo_epi16(b[i], b[i + 4]);
    x[2 * i + 1] = _mm_unpackhi_epi16(b[i], b[i + 4]);
  }
}

// Eight dimensions of one KV head.
struct Column {
  const Args& a;
  long long head, dim;

  const float* from(const void* x, long long row) const {
    return static_cast<const float*>(x) + row * a.x_stride + head * a.head_dim + dim;
  }
  long long block(long long slot) const {
    return slot / a.page_tokens * a.page_stride + head * a.head_dim * a.page_tokens;
  }
  uint16_t* k(long long slot) const {
    return static_cast<uint16_t*>(a.k_pages) + block(slot) + dim * a.page_tokens +
           slot % a.page_tokens;
  }
  uint16_t* v(long long slot) const {
    return static_cast<uint16_t*>(a.v_pages) + block(slot) + slot % a.page_tokens * a.head_dim +
           dim;
  }
};

// Whether rows [row, row + 8) go to neighbouring places of one page.
bool is_run(const Args& a, long long row) {
  const long long slot = a.slots[row];
  if (row + 8 > a.n_rows || slot % a.page_tokens + 8 > a.page_tokens) return false;
  for (int i = 1; i < 8; ++i)
    if (a.slots[row + i] != slot + i) return false;
  return true;
}

void store_k_run(const Column& column, long long row) {
  __m128i x[8];
  for (int i = 0; i < 8; ++i) x[i] = round8(column.from(column.a.k, row + i));
  transpose8(x);
  uint16_t* to = column.k(column.a.slots[row]);
  for (int i = 0; i < 8; ++i) store8(to + i * column.a.page_tokens, x[i]);
}

void store_k(const Column& column, long long row) {
  alignas(16) uint16_t x[8];
  store8(x, round8(column.from(column.a.k, row)));
  uint16_t* to = column.k(column.a.slots[row]);
  for (int i = 0; i < 8; ++i) to[i * column.a.page_tokens] = x[i];
}

void store_column(const Column& column) {
  const Args& a = column.a;
  for (long long row = 0; row < a.n_rows && a.what != Stored::keys; ++row)
    if (a.slots[row] >= 0) store8(column.v(a.slots[row]), round8(column.from(a.v, row)));
  for (long long row = 0; row < a.n_rows && a.what != Stored::values;) {
    const bool stored = a.slots[row] >= 0, run = stored && is_run(a, row);
    if (run)
      store_k_run(column, row);
    else if (stored)
      store_k(column, row);
    row += run ? 8 : 1;
  }
}

}  // namespace

// Lanes split heads and dimensions, not rows: neighbouring rows share lines of a K page.
Status run(const Args& a, Exec& exec) {
  const Share columns = exec.columns(a.n_kv_heads * a.head_dim);
  for (long long i = columns.begin; i < columns.end; i += 8)
    store_column({a, i / a.head_dim, i % a.head_dim});
  return {};
}

}  // namespace millrace::kv_store::avx2
MILLRACE_TARGET_END
