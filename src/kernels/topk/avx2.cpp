// Three steps. A lower bound T on the k-th largest comes from the maxima of 4k groups of elements:
// whatever is k-th among the maxima has k elements at or above it, and on unsorted data few more
// than k (p^(n/4k) = 3/4). One pass keeps the elements at or above T. The survivors are sorted, by
// counting ranks when they are few and by radix when many; should ties have let too many through,
// the exact k-th key is found among them first.
#include <immintrin.h>

#include <algorithm>
#include <array>

#include "base/isa.h"
#include "kernels/lanes_avx2.h"
#include "kernels/topk/op.h"
#include "kernels/topk/order.h"
#include "kernels/topk/radix.h"
#include "kernels/topk/row.h"

MILLRACE_TARGET_AVX2
namespace millrace::topk::avx2 {
namespace {

using lanes::avx2::mask_of;

// Where counting ranks (m^2 / 8 compares) stops beating radix sort.
constexpr long long kRankMost = 128;
constexpr int32_t kPad = std::numeric_limits<int32_t>::min();  // below every key

// compress_table[mask]: the set bits' positions, a byte each, ascending.
constexpr std::array<uint64_t, 256> kCompress = [] {
  std::array<uint64_t, 256> table{};
  for (unsigned mask = 0; mask < 256; ++mask)
    for (unsigned bit = 0, at = 0; bit < 8; ++bit)
      if (mask >> bit & 1) table[mask] |= uint64_t{bit} << (8 * at++);
  return table;
}();

constexpr long long round_up8(long long n) {
  return (n + 7) & ~7ll;
}

// Up to this many survivors are sorted whole; beyond, the exact k-th key is found first.
long long most_sorted(long long n, long long k) {
  return std::min(n, 2 * k + 64);
}

// The maxima of 8 * n_vectors groups bound the k-th largest; a group is one lane of `depth`
// vectors. Below two the maxima would be the row itself.
struct Groups {
  long long n_vectors, depth;
};

Groups groups_of(long long n, long long k) {
  const long long n_vectors = (4 * k + 7) / 8, depth = n / (8 * n_vectors);
  return depth < 2 ? Groups{0, 0} : Groups{n_vectors, depth};
}

// keys and indices take two vectors past the last survivor.
struct Scratch {
  int32_t *keys, *indices, *maxima;
  Candidate *from, *to;

  Scratch(int32_t* words, long long n, long long k) {
    keys = words;
    indices = keys + round_up8(n) + 16;
    maxima = indices + round_up8(n) + 16;
    from = reinterpret_cast<Candidate*>(maxima + 8 * groups_of(n, k).n_vectors);
    to = from + round_up8(most_sorted(n, k));
  }
};

__m256i load(const int32_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

void store(int32_t* p, __m256i v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
}

__m256i keys_of(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i sign = _mm256_and_si256(_mm256_srai_epi32(bits, 31), _mm256_set1_epi32(0x7fffffff));
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  return _mm256_blendv_epi8(_mm256_xor_si256(bits, sign), _mm256_set1_epi32(kNanKey),
                            _mm256_castps_si256(nan));
}

int32_t sum_of(__m256i v8) {
  const __m128i v4 = _mm_add_epi32(_mm256_castsi256_si128(v8), _mm256_extracti128_si256(v8, 1));
  const __m128i v2 = _mm_add_epi32(v4, _mm_shuffle_epi32(v4, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(v2, _mm_shuffle_epi32(v2, 0xb1)));
}

// n is a multiple of 8, here and below, where keys are padded with kPad.
long long count_at_least(const int32_t* keys, long long n, int32_t least) {
  const __m256i below = _mm256_set1_epi32(least - 1);
  __m256i even = _mm256_setzero_si256(), odd = even;
  long long i = 0;
  for (; i + 16 <= n; i += 16) {
    even = _mm256_sub_epi32(even, _mm256_cmpgt_epi32(load(keys + i), below));
    odd = _mm256_sub_epi32(odd, _mm256_cmpgt_epi32(load(keys + i + 8), below));
  }
  if (i < n) even = _mm256_sub_epi32(even, _mm256_cmpgt_epi32(load(keys + i), below));
  return sum_of(_mm256_add_epi32(even, odd));
}

struct Range {
  int32_t least, largest;
};

Range range_of(const int32_t* keys, long long n) {
  const __m256i pad = _mm256_set1_epi32(kPad), top = _mm256_set1_epi32(0x7fffffff);
  __m256i least = top, largest = pad;
  for (long long i = 0; i < n; i += 8) {
    const __m256i v = load(keys + i);
    largest = _mm256_max_epi32(largest, v);
    least = _mm256_min_epi32(least, _mm256_blendv_epi8(v, top, _mm256_cmpeq_epi32(v, pad)));
  }
  alignas(32) int32_t lo[8], hi[8];
  store(lo, least);
  store(hi, largest);
  return {*std::min_element(lo, lo + 8), *std::max_element(hi, hi + 8)};
}

// What is known of a threshold: `reached` of the keys reach `least`, k or more; `passed`, fewer,
// reach `above`.
struct Bracket {
  int64_t least, above;
  long long reached, passed;

  int64_t middle() const { return least + std::max<int64_t>(1, (above - least) / 2); }
  // Where a straight line through the two counts, over the values, meets `count`; the middle where
  // that says nothing (Inf, or a step of less than one key).
  int64_t interpolate(long long count) const {
    const float low = value_of(static_cast<int32_t>(least));
    const float high = value_of(static_cast<int32_t>(above - 1));
    const float share = static_cast<float>(reached - count) / static_cast<float>(reached - passed);
    const int64_t key = key_of(low + (high - low) * share);
    return key > least && key < above ? key : middle();
  }
};

// A key that at least k of n reach: at most k + slack of them, or exactly the k-th largest key. The
// first probe is just above the least key: with masked logits most of a row is -Inf, and the
// answer. Then two probes by interpolation for each one in the middle, which bounds their number.
int32_t threshold(const int32_t* keys, long long n, long long k, long long slack) {
  const Range range = range_of(keys, n);
  Bracket b = {range.least, int64_t{range.largest} + 1, n, 0};
  int64_t probe = b.least + 1;
  for (int round = 1; probe < b.above; ++round) {
    const long long count = count_at_least(keys, n, static_cast<int32_t>(probe));
    if (count < k) {
      b.above = probe;
      b.passed = count;
    } else {
      b.least = probe;
      b.reached = count;
      if (count <= k + slack) break;
    }
    probe = round % 3 == 0 ? b.middle() : b.interpolate(k + slack / 2);
  }
  return static_cast<int32_t>(b.least);
}

// max_ps(x, m) is m where x is NaN, so a group of NaN alone counts as -Inf.
void group_maxima(const float* x, const Groups& groups, int32_t* maxima) {
  const auto [n_vectors, depth] = groups;
  for (long long g = 0; g < n_vectors; ++g) {
    __m256 even = _mm256_set1_ps(-std::numeric_limits<float>::infinity()), odd = even;
    const float* p = x + g * depth * 8;
    long long i = 0;
    for (; i + 2 <= depth; i += 2) {
      even = _mm256_max_ps(_mm256_loadu_ps(p + i * 8), even);
      odd = _mm256_max_ps(_mm256_loadu_ps(p + i * 8 + 8), odd);
    }
    if (i < depth) even = _mm256_max_ps(_mm256_loadu_ps(p + i * 8), even);
    store(maxima + g * 8, keys_of(_mm256_max_ps(even, odd)));
  }
}

class Survivors {
 public:
  explicit Survivors(const Scratch& s) : keys_(s.keys), indices_(s.indices) {}

  void append(__m256i raw, unsigned mask, long long first) {
    const __m256i lanes =
        _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(kCompress[mask])));
    store(keys_ + n_, _mm256_permutevar8x32_epi32(raw, lanes));
    store(indices_ + n_, _mm256_add_epi32(lanes, _mm256_set1_epi32(static_cast<int>(first))));
    n_ += __builtin_popcount(mask);
  }
  long long size() const { return n_; }

 private:
  int32_t* keys_;
  int32_t* indices_;
  long long n_ = 0;
};

unsigned at_least(__m256 x, __m256 least) {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(x, least, _CMP_GE_OQ)));
}

// Keeps every x >= least, as floats compare: both zeros at a zero, no NaN.
long long collect(const float* x, long long n, float least, const Scratch& s) {
  Survivors kept(s);
  const __m256 t = _mm256_set1_ps(least);
  long long i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256 v0 = _mm256_loadu_ps(x + i), v1 = _mm256_loadu_ps(x + i + 8);
    const __m256 v2 = _mm256_loadu_ps(x + i + 16), v3 = _mm256_loadu_ps(x + i + 24);
    const unsigned m0 = at_least(v0, t), m1 = at_least(v1, t);
    const unsigned m2 = at_least(v2, t), m3 = at_least(v3, t);
    if ((m0 | m1 | m2 | m3) == 0) continue;
    kept.append(_mm256_castps_si256(v0), m0, i);
    kept.append(_mm256_castps_si256(v1), m1, i + 8);
    kept.append(_mm256_castps_si256(v2), m2, i + 16);
    kept.append(_mm256_castps_si256(v3), m3, i + 24);
  }
  for (; i < n; i += 8) {
    const __m256i live = mask_of(n - i);
    const __m256 v = _mm256_maskload_ps(x + i, live);
    const unsigned in = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(live)));
    kept.append(_mm256_castps_si256(v), at_least(v, t) & in, i);
  }
  return kept.size();
}

long long collect_all(const float* x, long long n, const Scratch& s) {
  Survivors kept(s);
  for (long long i = 0; i < n; i += 8) {
    const __m256i live = mask_of(n - i);
    const unsigned in = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(live)));
    kept.append(_mm256_castps_si256(_mm256_maskload_ps(x + i, live)), in, i);
  }
  return kept.size();
}

void pad(int32_t* end) {
  store(end, _mm256_set1_epi32(kPad));
  store(end + 8, _mm256_set1_epi32(kPad));
}

// The survivors were kept as raw bits; makes keys of them and pads to whole vectors.
void make_keys(int32_t* keys, long long n) {
  for (long long i = 0; i < n; i += 8)
    store(keys + i, keys_of(_mm256_castsi256_ps(load(keys + i))));
  pad(keys + n);
}

// Keeps of n > k survivors the k first in order.
long long keep_exactly(const Scratch& s, long long n, long long k) {
  const long long padded = round_up8(n);
  const int32_t kth = threshold(s.keys, padded, k, 0);
  long long ties = k - count_at_least(s.keys, padded, kth + 1);
  long long kept = 0;
  for (long long i = 0; i < n; ++i) {
    const bool tie = s.keys[i] == kth && ties > 0;
    ties -= tie;
    s.indices[kept] = s.indices[i];
    s.keys[kept] = s.keys[i];
    kept += tie || s.keys[i] > kth;
  }
  pad(s.keys + kept);
  return kept;
}

// For each of the sixteen from `first`, how many survivors have a larger key.
void count_larger(const int32_t* keys, long long n, long long first, int32_t* rank) {
  const __m256i lo = load(keys + first), hi = load(keys + first + 8);
  __m256i rank_lo = _mm256_setzero_si256(), rank_hi = rank_lo;
  for (long long j = 0; j < n; ++j) {
    const __m256i other = _mm256_set1_epi32(keys[j]);
    rank_lo = _mm256_sub_epi32(rank_lo, _mm256_cmpgt_epi32(other, lo));
    rank_hi = _mm256_sub_epi32(rank_hi, _mm256_cmpgt_epi32(other, hi));
  }
  store(rank, rank_lo);
  store(rank + 8, rank_hi);
}

void emit_by_rank(const Scratch& s, long long n, const Row& out) {
  alignas(32) int32_t rank[kRankMost + 16];
  uint8_t n_equal[kRankMost] = {};  // placed so far, of the keys with this rank
  for (long long i = 0; i < n; i += 16) count_larger(s.keys, n, i, rank + i);
  for (long long i = 0; i < n; ++i) {
    const long long at = rank[i] + n_equal[rank[i]]++;
    if (at >= out.k) continue;
    out.values[at] = value_of(s.keys[i]);
    out.indices[at] = s.indices[i];
  }
}

void emit_by_radix(const Scratch& s, long long n, const Row& out) {
  for (long long i = 0; i < n; ++i) s.from[i] = {s.keys[i], s.indices[i]};
  const Candidate* sorted = radix_sort(s.from, s.to, n);
  for (long long j = 0; j < out.k; ++j) {
    out.values[j] = value_of(sorted[j].key);
    out.indices[j] = sorted[j].index;
  }
}

long long survivors_of(const Row& row, const Scratch& s) {
  const Groups groups = groups_of(row.n, row.k);
  if (groups.depth == 0) return collect_all(row.x, row.n, s);
  group_maxima(row.x, groups, s.maxima);
  const int32_t least = threshold(s.maxima, 8 * groups.n_vectors, row.k, row.k / 16);
  // At -Inf the bound says nothing: a group of NaN alone gives the same.
  if (least <= key_of(-std::numeric_limits<float>::infinity())) return collect_all(row.x, row.n, s);
  return collect(row.x, row.n, value_of(least), s);
}

}  // namespace

long long scratch_words(long long n, long long k) {
  return 2 * (round_up8(n) + 16) + 8 * groups_of(n, k).n_vectors + 4 * round_up8(most_sorted(n, k));
}

long long scratch_words_up_to(long long n, long long k) {
  const long long n_maxima = std::min(round_up8(n), round_up8(4 * k));  // depth >= 2: n / 2 maxima
  return 2 * (round_up8(n) + 16) + n_maxima + 4 * round_up8(most_sorted(n, k));
}

void select_row(const Row& row, int32_t* scratch) {
  const Scratch s(scratch, row.n, row.k);
  long long n = survivors_of(row, s);
  make_keys(s.keys, n);
  if (n > most_sorted(row.n, row.k)) n = keep_exactly(s, n, row.k);
  if (n <= kRankMost)
    emit_by_rank(s, n, row);
  else
    emit_by_radix(s, n, row);
  // A key does not tell NaNs apart; x does.
  for (long long j = row.k - 1; j >= 0 && row.values[j] != row.values[j]; --j)
    row.values[j] = row.x[row.indices[j]];
}

size_t workspace_bytes(const Args& a, int n_lanes) {
  return static_cast<size_t>(scratch_words(a.n, a.k) * n_lanes) * sizeof(int32_t);
}

Status run(const Args& a, Exec& exec) {
  auto* words = reinterpret_cast<int32_t*>(exec.workspace) + exec.lane * scratch_words(a.n, a.k);
  const Share rows = exec.rows(a.n_rows);
  for (long long r = rows.begin; r < rows.end; ++r)
    select_row({a.x + r * a.n, a.n, a.k, a.values + r * a.k, a.indices + r * a.k}, words);
  return {};
}

}  // namespace millrace::topk::avx2
MILLRACE_TARGET_END
