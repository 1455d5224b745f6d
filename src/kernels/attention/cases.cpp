#include "kernels/attention/cases.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "kernels/attention/op.h"
#include "kernels/attention/work.h"
#include "tensor/element.h"

namespace millrace::attention {
namespace {

constexpr std::array kBatchNames = {"decode", "prefill", "mixed", "ends"};
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// One page more than a sequence needs, whose table entry is never read.
long long max_pages(const Problem& p) {
  return (p.ctx + p.page_tokens - 1) / p.page_tokens + 1;
}

// One page more than all sequences own: page 0 belongs to nobody.
long long n_pages(const Problem& p) {
  return p.n_seqs * (max_pages(p) - 1) + 1;
}

// The pages of the sequences lie interleaved and backwards.
long long page_of(const Problem& p, long long seq, long long index) {
  return n_pages(p) - 1 - (index * p.n_seqs + seq);
}

long long page_stride(const Problem& p) {
  return p.n_kv_heads * p.head_dim * p.page_tokens + p.page_gap;
}

long long q_stride(const Problem& p) {
  return p.n_heads * p.head_dim + p.gap;
}

long long position_of(const Problem& p, long long r, Rng& rng) {
  if (p.batch == Batch::decode) return p.ctx - 1;
  if (p.batch == Batch::prefill) return p.first + r;
  if (p.batch == Batch::ends) return r / p.n_seqs % 2 == 0 ? p.first : p.ctx - 1;
  const auto any = static_cast<long long>(rng.below(static_cast<uint64_t>(p.ctx - p.first)));
  return r % 7 == 5 ? -1 : r % 7 == 1 ? p.ctx - 1 : p.first + any;
}

// Whether a row of the batch may see token t.
bool may_be_seen(const Problem& p, long long t) {
  const long long last = p.ctx - 1, first = p.batch == Batch::decode ? last : p.first;
  const auto reaches = [&](long long from) { return p.window == 0 || t > from - p.window; };
  if (p.batch == Batch::ends) return (t <= first && reaches(first)) || (t <= last && reaches(last));
  return t <= last && reaches(first);
}

bool page_may_be_seen(const Problem& p, long long index) {
  for (long long i = 0; i < p.page_tokens; ++i)
    if (may_be_seen(p, index * p.page_tokens + i)) return true;
  return false;
}

Fill fill_positions(const Problem& p) {
  return [p](Rng& rng, void* dst) {
    for (long long r = 0; r < p.n_rows; ++r)
      static_cast<int*>(dst)[r] = static_cast<int>(position_of(p, r, rng));
  };
}

Fill fill_sequences(const Problem& p) {
  return [p](Rng& rng, void* dst) {
    const auto n_seqs = static_cast<uint64_t>(p.n_seqs);
    for (long long r = 0; r < p.n_rows; ++r)
      static_cast<int*>(dst)[r] = p.batch == Batch::mixed ? static_cast<int>(rng.below(n_seqs))
                                                          : static_cast<int>(r % p.n_seqs);
  };
}

// Of a page that no row sees: an id outside the cache.
int table_entry(const Problem& p, long long seq, long long index) {
  if (page_may_be_seen(p, index)) return static_cast<int>(page_of(p, seq, index));
  return index % 2 == 0 ? -1 : 0x7fffffff;
}

Fill fill_tables(const Problem& p) {
  return [p](Rng&, void* dst) {
    for (long long s = 0; s < p.n_seqs; ++s)
      for (long long i = 0; i < max_pages(p); ++i)
        static_cast<int*>(dst)[s * max_pages(p) + i] = table_entry(p, s, i);
  };
}

enum class Part { k, v };

// Writes `value` as dimension d of token t of a sequence, for one KV head.
void put(const Problem& p, Part part, void* pages, long long seq, long long head, long long t,
         long long d, float value) {
  const long long page = page_of(p, seq, t / p.page_tokens), place = t % p.page_tokens;
  const long long block = page * page_stride(p) + head * p.head_dim * p.page_tokens;
  const long long at = part == Part::k ? d * p.page_tokens + place : place * p.head_dim + d;
  store_element(p.kv_type, pages, block + at, value);
}

// NaN wherever no row may look: the spare page, what lies between pages, and the tokens of a
// sequence's pages that no row sees.
void spoil_unread(const Problem& p, Part part, void* pages) {
  for (long long i = 0; i < page_stride(p); ++i) store_element(p.kv_type, pages, i, kNaN);
  for (long long page = 1; page <= n_pages(p); ++page)
    for (long long i = 1; i <= p.page_gap; ++i)
      store_element(p.kv_type, pages, page * page_stride(p) - i, kNaN);
  const long long end = (max_pages(p) - 1) * p.page_tokens;
  for (long long s = 0; s < p.n_seqs; ++s)
    for (long long h = 0; h < p.n_kv_heads; ++h)
      for (long long t = 0; t < end; ++t)
        for (long long d = 0; d < p.head_dim && !may_be_seen(p, t); ++d)
          put(p, part, pages, s, h, t, d, kNaN);
}

// In sequence 0 single elements; of the last sequence scores that are all +Inf or all -Inf, by the
// sign of the query: the first head's in the second chunk, the last one's in the first.
void make_hostile(const Problem& p, Part part, void* pages) {
  if (part == Part::v) {
    put(p, part, pages, 0, 0, 3, 0, kNaN);
    put(p, part, pages, 0, 0, 5, 1, kInf);
    put(p, part, pages, 0, 0, 6, 2, -kInf);
    put(p, part, pages, 0, 0, 7, 3, 0x1p-14f);
    return;
  }
  put(p, part, pages, 0, 0, 9, 2, kInf);
  for (long long t = 0; t < p.ctx && t < 2 * kChunkTokens; ++t)
    put(p, part, pages, p.n_seqs - 1, t < kChunkTokens ? p.n_kv_heads - 1 : 0, t, 1, kInf);
}

// Normal draws, repeated with a shift every 64 Ki elements: a cache of a gigabyte fills in a
// second.
Fill fill_pages(const Problem& p, Part part) {
  return [p, part](Rng& rng, void* dst) {
    const long long elems = n_pages(p) * page_stride(p);
    std::vector<float> pool(static_cast<size_t>(std::min(elems, 1LL << 16)));
    for (float& x : pool) x = rng.normal();
    for (long long i = 0; i < elems; ++i) {
      const auto at = static_cast<size_t>(i + (i >> 16) * 31337) % pool.size();
      store_element(p.kv_type, dst, i, pool[at]);
    }
    spoil_unread(p, part, dst);
    if (p.hostile) make_hostile(p, part, dst);
  };
}

std::vector<Port> ports_of(const Problem& p) {
  const long long rows = p.n_rows, width = p.n_heads * p.head_dim;
  const long long cache = n_pages(p) * page_stride(p);
  std::vector<Port> ports = {{.name = "q",
                              .type = p.q_type,
                              .elems = rows * q_stride(p),
                              .row_elems = q_stride(p),
                              .fill = fill_normal(p.q_type, rows * q_stride(p), 3.0f),
                              .align = p.q_type == DType::bf16 ? size_t{16} : size_t{0}},
                             {.name = "k_pages",
                              .type = p.kv_type,
                              .elems = cache,
                              .fill = fill_pages(p, Part::k),
                              .align = 64},
                             {.name = "v_pages",
                              .type = p.kv_type,
                              .elems = cache,
                              .fill = fill_pages(p, Part::v),
                              .align = 64},
                             {.name = "tables",
                              .type = DType::i32,
                              .elems = p.n_seqs * max_pages(p),
                              .fill = fill_tables(p)},
                             {.name = "sequences",
                              .type = DType::i32,
                              .elems = rows,
                              .row_elems = 1,
                              .fill = fill_sequences(p)},
                             {.name = "positions",
                              .type = DType::i32,
                              .elems = rows,
                              .row_elems = 1,
                              .fill = fill_positions(p)},
                             {.name = "out",
                              .type = p.q_type,
                              .elems = rows * width,
                              .role = Role::out,
                              .row_elems = width}};
  if (p.n_shares == 0) return ports;
  const auto ints = static_cast<int64_t>(list_ints(rows, p.n_shares));
  ports.push_back({.name = "list",
                   .type = DType::i32,
                   .elems = ints,
                   .fill = fill_zero(static_cast<size_t>(ints) * sizeof(int)),
                   .align = 16});
  return ports;
}

// The list follows from the sequences and positions.
void derive_list(const Problem& p, std::span<void* const> ptr) {
  const auto rows = static_cast<size_t>(p.n_rows);
  const WorkBatch batch{.sequences = {static_cast<const int*>(ptr[4]), rows},
                        .positions = {static_cast<const int*>(ptr[5]), rows},
                        .n_heads = p.n_heads,
                        .n_kv_heads = p.n_kv_heads,
                        .page_tokens = p.page_tokens,
                        .window = p.window};
  make_list(batch, {.n_shares = p.n_shares, .n_records = p.n_records},
            {static_cast<int*>(ptr[7]), list_ints(p.n_rows, p.n_shares)});
}

Args args_of(const Problem& p, std::span<void* const> ptr) {
  return {.q = ptr[0],
          .k_pages = ptr[1],
          .v_pages = ptr[2],
          .tables = static_cast<const int*>(ptr[3]),
          .sequences = static_cast<const int*>(ptr[4]),
          .positions = static_cast<const int*>(ptr[5]),
          .out = ptr[6],
          .n_rows = p.n_rows,
          .n_heads = p.n_heads,
          .n_kv_heads = p.n_kv_heads,
          .head_dim = p.head_dim,
          .q_stride = q_stride(p),
          .n_pages = n_pages(p),
          .page_tokens = p.page_tokens,
          .page_stride = page_stride(p),
          .n_seqs = p.n_seqs,
          .max_pages = max_pages(p),
          .window = p.window,
          .scale = 1.0f / std::sqrt(static_cast<float>(p.head_dim)),
          .q_type = p.q_type,
          .kv_type = p.kv_type,
          .work = {.list = p.n_shares == 0 ? nullptr : static_cast<int*>(ptr[7]),
                   .n_shares = p.n_shares,
                   .n_records = p.n_records}};
}

// Only decode and prefill are timed; in the others every row counts as the last of its sequence.
Seen seen_of(const Problem& p) {
  const auto seen_at = [&](long long position) {
    const long long n = position + 1;
    return static_cast<double>(p.window == 0 ? n : std::min(n, p.window));
  };
  const auto rows = static_cast<double>(p.n_rows);
  const auto seqs = static_cast<double>(std::min(p.n_seqs, p.n_rows));
  if (p.batch != Batch::prefill)
    return {.tokens = seqs * seen_at(p.ctx - 1), .pairs = rows * seen_at(p.ctx - 1)};
  Seen seen{.tokens = seen_at(p.first) + rows - 1};
  for (long long r = 0; r < p.n_rows; ++r) seen.pairs += seen_at(p.first + r);
  return seen;
}

// A score is a chain of head_dim roundings relative to scale * sum |q k|, below 4 * sqrt(head_dim)
// here, and its weight is off by as much; on tensor cores the weights are rounded to bf16 besides
// (8 bits, so a relative 2^-8). The sums have up to 256 roundings in a chunk, numerator and
// denominator, and three a fold.
reference::Errors errors_of(const Problem& p) {
  const auto dim = static_cast<double>(p.head_dim);
  const double folds = 3.0 * static_cast<double>(p.ctx / kChunkTokens);
  reference::Errors errors{.of_sums = (320 + folds) * 0x1p-24,
                           .of_weights = (4 * dim * std::sqrt(dim) + 8) * 0x1p-24};
  if (p.q_type == DType::bf16) errors.of_weights += 0x1p-8;
  return errors;
}

// SmolLM2-135M, Qwen3-0.6B and a windowed layer of Gemma 3 1B on a CPU; Qwen3-0.6B on a GPU, where
// 33 and 34 sequences stand on either side of a wave of 132 multiprocessors at four blocks a
// sequence.
void add_timed(std::vector<Case>& out) {
  const auto add = [&](Problem p) {
    p.timed = true;
    out.push_back(make_case(p));
  };
  const Batch decode = Batch::decode, prefill = Batch::prefill;
  for (long long ctx : {2048, 8192}) {
    add({1, 9, 3, 64, ctx, 64, 1, decode});
    add({1, 16, 8, 128, ctx, 64, 1, decode});
  }
  add({512, 9, 3, 64, 512, 64, 1, prefill, 0});
  add({512, 9, 3, 64, 2048, 64, 1, prefill, 1536});
  add({512, 16, 8, 128, 512, 64, 1, prefill, 0});
  const DType f32 = DType::f32, bf16 = DType::bf16;
  add({1, 9, 3, 64, 2048, 64, 1, decode, 0, f32, bf16});
  add({512, 9, 3, 64, 512, 64, 1, prefill, 0, f32, bf16});
  Problem gemma{1, 4, 1, 256, 8192, 64, 1, decode};
  gemma.window = 512;
  add(gemma);
  add({1, 16, 8, 128, 65536, 64, 1, decode, 0, bf16, bf16});
  add({33, 16, 8, 128, 8192, 64, 33, decode, 0, bf16, bf16});
  add({34, 16, 8, 128, 8192, 64, 34, decode, 0, bf16, bf16});
  add({512, 16, 8, 128, 512, 64, 1, prefill, 0, bf16, bf16});
  add({512, 16, 8, 128, 4096, 64, 1, prefill, 3584, bf16, bf16});
  for (long long ctx : {100, 1024, 8192}) add({1, 16, 8, 128, ctx, 64, 1, decode, 0, bf16, bf16});
}

constexpr Problem kHostile = {.n_rows = 12,
                              .n_heads = 4,
                              .n_kv_heads = 2,
                              .head_dim = 64,
                              .ctx = 520,
                              .n_seqs = 2,
                              .hostile = true};

// Windows that begin inside a page, at a page, at a chunk and before the first token; shorter than
// a vector, longer than a chunk; rows whose windows leave pages and whole chunks between them.
void add_windows(std::vector<Case>& out, DType q_type, DType kv_type) {
  const auto add = [&](Problem p, long long window) {
    p.q_type = q_type;
    p.kv_type = kv_type;
    p.window = window;
    out.push_back(make_case(p));
  };
  const Batch decode = Batch::decode, prefill = Batch::prefill, mixed = Batch::mixed;
  for (long long window : {1, 7, 64, 256, 300, 512, 600})
    add({2, 3, 1, 64, 600, 64, 1, decode}, window);
  for (long long window : {9, 33, 300}) {
    add({40, 3, 1, 64, 560, 16, 1, prefill, 490}, window);
    add({12, 4, 2, 64, 600, 32, 2, mixed, 250}, window);
    add({4, 2, 1, 64, 800, 16, 1, Batch::ends, 200}, window);
  }
  add({4, 2, 1, 64, 250, 16, 1, Batch::ends, 20}, 9);
  add({40, 3, 1, 80, 40, 16, 1, prefill}, 20);
  add({30, 2, 1, 64, 533, 64, 1, prefill, 503}, 533);
  add({5, 2, 1, 20, 70, 16, 2}, 30);
  add(kHostile, 260);
}

// Enough rows for units whose K and V are widened first: several blocks over the same pages, at a
// diagonal, under windows that leave pages to some blocks only, among values that are no numbers.
void add_widened(std::vector<Case>& out, DType kv_type) {
  const auto add = [&](Problem p, long long window = 0) {
    p.kv_type = kv_type;
    p.window = window;
    out.push_back(make_case(p));
  };
  add({70, 12, 2, 64, 570, 64, 1, Batch::prefill, 500});
  add({70, 12, 2, 80, 570, 16, 1, Batch::prefill, 500}, 33);
  add({70, 12, 2, 64, 300, 16, 1, Batch::mixed, 20}, 33);
  add({70, 12, 2, 64, 250, 16, 1, Batch::ends, 20}, 9);
  add({.n_rows = 70,
       .n_heads = 12,
       .n_kv_heads = 2,
       .head_dim = 64,
       .ctx = 280,
       .batch = Batch::prefill,
       .first = 210,
       .hostile = true});
}

// An f32 query over KV of another type than f16: the same arithmetic over other loads.
void add_mixed_types(std::vector<Case>& out, DType kv_type) {
  const auto add = [&](Problem p) {
    p.kv_type = kv_type;
    out.push_back(make_case(p));
  };
  add({.n_rows = 3, .n_heads = 2, .n_kv_heads = 1, .head_dim = 64});
  add({9, 9, 3, 64, 300, 64, 2});
  add({5, 14, 2, 72, 33, 64, 1});
  add({3, 6, 2, 128, 600, 128, 3, Batch::decode});
  add({30, 2, 1, 64, 533, 16, 1, Batch::prefill, 503});
  add({.n_rows = 9,
       .n_heads = 4,
       .n_kv_heads = 2,
       .head_dim = 64,
       .ctx = 520,
       .n_seqs = 2,
       .window = 100,
       .page_gap = 96});
  add(kHostile);
}

// Every problem that a list may serve has one, if only of a few shares.
Problem with_list(Problem p) {
  const bool on_device = p.q_type == DType::bf16 && p.kv_type == DType::bf16;
  if (on_device && p.n_shares == 0 && p.n_heads / p.n_kv_heads <= kTileVectors)
    p.n_shares = p.timed ? 132 : 3;
  if (p.timed) p.n_records = 1 << 16;
  return p;
}

// Lists of one share and of more than there are chunks, heads cut into many, no room for records,
// more records than are folded together, a tile of rows of which some see a value that is no
// number.
void add_lists(std::vector<Case>& out) {
  const auto add = [&](Problem p, int n_shares, long long n_records = 1000) {
    p.q_type = p.kv_type = DType::bf16;
    p.n_shares = n_shares;
    p.n_records = n_records;
    out.push_back(make_case(p));
  };
  const Batch decode = Batch::decode, prefill = Batch::prefill;
  for (int n_shares : {1, 2, 7, 40}) {
    add({2, 4, 2, 128, 1100, 64, 2, decode}, n_shares);
    add({22, 4, 2, 64, 800, 32, 1, prefill, 770}, n_shares);
    add({9, 9, 3, 64, 700, 16, 3}, n_shares);
  }
  for (long long n_records : {0, 10, 30}) add({3, 4, 2, 64, 900, 64, 3, decode}, 11, n_records);
  add({1, 2, 1, 64, 34 * kChunkTokens + 3, 64, 1, decode}, 40);
  add({5, 4, 1, 80, 600, 16, 1, prefill, 595}, 4);
  add({5, 10, 1, 96, 600, 16, 1, prefill, 595}, 4);
  add({9, 4, 1, 256, 600, 128, 1, prefill, 591}, 4);
  for (long long dim : {64, 128})
    add({.n_rows = 12,
         .n_heads = 4,
         .n_kv_heads = 2,
         .head_dim = dim,
         .ctx = 280,
         .batch = prefill,
         .hostile = true},
        3);
}

}  // namespace

Case make_case(const Problem& given) {
  const Problem p = with_list(given);
  Case c;
  c.name = fmt::format("{}_{}x{}x{}x{}_ctx{}_page{}_seqs{}_{}_{}{}{}{}{}{}",
                       kBatchNames[static_cast<size_t>(p.batch)], p.n_rows, p.n_heads, p.n_kv_heads,
                       p.head_dim, p.ctx, p.page_tokens, p.n_seqs, name_of(p.q_type),
                       name_of(p.kv_type), p.window == 0 ? "" : fmt::format("_window{}", p.window),
                       p.gap != 0 ? "_strided" : "", p.page_gap != 0 ? "_apart" : "",
                       p.hostile ? "_hostile" : "",
                       given.n_shares == 0 ? "" : fmt::format("_shares{}", p.n_shares));
  c.hostile = p.hostile;
  c.ports = ports_of(p);
  c.floor = floor_of(bind_rows(c, p, args_of, make_case), seen_of(p));
  c.tolerance = {.eps = 1, .abs = 1e-12};  // the magnitudes are the bounds
  if (p.n_shares != 0) c.derive = [p](std::span<void* const> ports) { derive_list(p, ports); };
  c.magnitude = [errors = errors_of(p)](const ArgsBox& box, size_t, std::span<double> out) {
    reference::magnitudes(*reinterpret_cast<const Args*>(box.bytes), errors, out);
  };
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  const auto add = [&](Problem p) { out.push_back(make_case(p)); };
  for (DType type : {DType::f32, DType::bf16}) {
    const DType kv = type == DType::f32 ? DType::f16 : DType::bf16;
    const auto add_typed = [&](Problem p) {
      p.q_type = type;
      p.kv_type = kv;
      add(p);
    };
    const Batch decode = Batch::decode, prefill = Batch::prefill;
    add_typed({1, 1, 1, 8, 1, 16});
    add_typed({6, 3, 1, 64, 40, 16, 2});
    add_typed({9, 9, 3, 64, 300, 64, 2});
    add_typed({6, 4, 2, 80, 290, 32, 2});
    add_typed({6, 4, 4, 96, 257, 16, 1});
    add_typed({5, 4, 2, 128, 530, 128, 3});
    add_typed({3, 2, 1, 256, 256, 256, 1});
    add_typed({5, 14, 2, 72, 33, 64, 1});   // 7 query heads to a KV head, a tail of 8 dimensions
    add_typed({5, 2, 1, 20, 70, 16, 2});    // not a multiple of 8
    add_typed({3, 50, 2, 16, 300, 32, 1});  // more query heads to a KV head than one unit holds
    add_typed({3, 6, 2, 64, 600, 64, 3, decode});
    add_typed({40, 3, 1, 64, 40, 16, 1, prefill});
    add_typed({30, 2, 1, 64, 533, 64, 1, prefill, 503});
    add_typed({.n_rows = 4, .n_heads = 2, .n_kv_heads = 1, .head_dim = 64, .gap = 5});
    add_typed({.n_rows = 9,
               .n_heads = 4,
               .n_kv_heads = 2,
               .head_dim = 64,
               .ctx = 300,
               .n_seqs = 2,
               .page_gap = 96});
    add_typed({.n_rows = 0, .n_heads = 2, .n_kv_heads = 1, .head_dim = 64});
    add_typed(kHostile);
    add_windows(out, type, kv);
  }
  for (DType kv : {DType::f32, DType::bf16}) add_mixed_types(out, kv);
  for (DType kv : {DType::f16, DType::bf16}) add_widened(out, kv);
  add_lists(out);
  add_timed(out);
  return out;
}

}  // namespace millrace::attention
