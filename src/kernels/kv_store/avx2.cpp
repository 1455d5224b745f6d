#include <immintrin.h>

#include "base/isa.h"
#include "kernels/kv_store/op.h"

MILLRACE_TARGET_AVX2
namespace millrace::kv_store::avx2 {
namespace {

// Eight elements of one type of cache: how they are rounded, stored and transposed.
struct Halves {
  using Bits = uint16_t;
  using Eight = __m128i;

  static void store(Bits* to, Eight x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), x); }

  // x[i] is row i of an 8 by 8 matrix; afterwards column i.
  static void transpose(Eight (&x)[8]) {
    Eight a[8], b[8];
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
};

struct F16 : Halves {
  static Eight round(const float* x) {
    return _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT);
  }
};

struct Bf16 : Halves {
  // To nearest even is adding half a unit, less one where the result is even already: the carry
  // does the rest, and takes what overflows to Inf. A NaN keeps the top of its payload and is
  // quiet.
  static Eight round(const float* x) {
    const __m256 value = _mm256_loadu_ps(x);
    const __m256i bits = _mm256_castps_si256(value), top = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), odd);
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
    const __m256i quiet = _mm256_or_si256(top, _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i code = _mm256_blendv_epi8(rounded, quiet, is_nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(code), _mm256_extracti128_si256(code, 1));
  }
};

struct F32 {
  using Bits = float;
  using Eight = __m256;

  static Eight round(const float* x) { return _mm256_loadu_ps(x); }
  static void store(Bits* to, Eight x) { _mm256_storeu_ps(to, x); }

  // Four rows at a time: then each vector's halves are columns four apart.
  static void transpose(Eight (&x)[8]) {
    Eight columns[8];
    for (int i = 0; i < 8; i += 4) {
      const Eight a = _mm256_unpacklo_ps(x[i], x[i + 1]), b = _mm256_unpackhi_ps(x[i], x[i + 1]);
      const Eight c = _mm256_unpacklo_ps(x[i + 2], x[i + 3]);
      const Eight d = _mm256_unpackhi_ps(x[i + 2], x[i + 3]);
      columns[i] = _mm256_shuffle_ps(a, c, 0x44);
      columns[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
      columns[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
      columns[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
    }
    for (int i = 0; i < 4; ++i) {
      x[i] = _mm256_permute2f128_ps(columns[i], columns[i + 4], 0x20);
      x[i + 4] = _mm256_permute2f128_ps(columns[i], columns[i + 4], 0x31);
    }
  }
};

// Eight dimensions of one KV head.
template <class Kv>
struct Column {
  using Bits = typename Kv::Bits;
  const Args& a;
  long long head, dim;

  const float* from(const void* x, long long row) const {
    return static_cast<const float*>(x) + row * a.x_stride + head * a.head_dim + dim;
  }
  long long block(long long slot) const {
    return slot / a.page_tokens * a.page_stride + head * a.head_dim * a.page_tokens;
  }
  Bits* k(long long slot) const {
    return static_cast<Bits*>(a.k_pages) + block(slot) + dim * a.page_tokens + slot % a.page_tokens;
  }
  Bits* v(long long slot) const {
    return static_cast<Bits*>(a.v_pages) + block(slot) + slot % a.page_tokens * a.head_dim + dim;
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

template <class Kv>
void store_k_run(const Column<Kv>& column, long long row) {
  typename Kv::Eight x[8];
  for (int i = 0; i < 8; ++i) x[i] = Kv::round(column.from(column.a.k, row + i));
  Kv::transpose(x);
  typename Kv::Bits* to = column.k(column.a.slots[row]);
  for (int i = 0; i < 8; ++i) Kv::store(to + i * column.a.page_tokens, x[i]);
}

template <class Kv>
void store_k(const Column<Kv>& column, long long row) {
  typename Kv::Bits x[8];
  Kv::store(x, Kv::round(column.from(column.a.k, row)));
  typename Kv::Bits* to = column.k(column.a.slots[row]);
  for (int i = 0; i < 8; ++i) to[i * column.a.page_tokens] = x[i];
}

template <class Kv>
void store_column(const Column<Kv>& column) {
  const Args& a = column.a;
  for (long long row = 0; row < a.n_rows && a.what != Stored::keys; ++row)
    if (a.slots[row] >= 0) Kv::store(column.v(a.slots[row]), Kv::round(column.from(a.v, row)));
  for (long long row = 0; row < a.n_rows && a.what != Stored::values;) {
    const bool stored = a.slots[row] >= 0, run = stored && is_run(a, row);
    if (run)
      store_k_run(column, row);
    else if (stored)
      store_k(column, row);
    row += run ? 8 : 1;
  }
}

// Lanes split heads and dimensions, not rows: neighbouring rows share lines of a K page.
template <class Kv>
void store_columns(const Args& a, const Exec& exec) {
  const Share columns = exec.columns(a.n_kv_heads * a.head_dim);
  for (long long i = columns.begin; i < columns.end; i += 8)
    store_column<Kv>({a, i / a.head_dim, i % a.head_dim});
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  if (a.kv_type == DType::f16)
    store_columns<F16>(a, exec);
  else if (a.kv_type == DType::bf16)
    store_columns<Bf16>(a, exec);
  else
    store_columns<F32>(a, exec);
  return {};
}

}  // namespace millrace::kv_store::avx2
MILLRACE_TARGET_END
