// Heads of every size with and without norms of their own, both orders of pairs, padding rows, and
// the projections of a Qwen3-0.6B layer.
#include <fmt/format.h>

#include "kernels/attention_input/op.h"
#include "kernels/kv_store/args.h"
#include "kernels/matmul/args.h"
#include "kernels/rmsnorm/args.h"
#include "kernels/rope/args.h"

namespace millrace::attention_input {
namespace {

struct Problem {
  DType type;
  long long n_rows, embd, n_heads, n_kv_heads, head_dim;
  rope::PairOrder order = rope::PairOrder::neox;
  DType v_type = type;
};

constexpr long long kPageTokens = 64, kPages = 3;

std::string name_of_case(const Problem& p, bool has_norms) {
  return fmt::format("{}{}_{}x{}_{}+{}x{}{}{}", name_of(p.type),
                     p.v_type == p.type ? "" : fmt::format("+{}", name_of(p.v_type)), p.n_rows,
                     p.embd, p.n_heads, p.n_kv_heads, p.head_dim,
                     p.order == rope::PairOrder::neox ? "_neox" : "", has_norms ? "_normed" : "");
}

// Every row in another page and place; one is padding.
Fill fill_slots(long long n_rows) {
  return [=](Rng& rng, void* dst) {
    const auto first = static_cast<long long>(rng.below(kPageTokens * kPages));
    for (long long r = 0; r < n_rows; ++r)
      static_cast<int*>(dst)[r] =
          r == 3 ? -1 : static_cast<int>((first + r * 67) % (kPageTokens * kPages));
  };
}

Fill fill_bits(long long words) {
  return [=](Rng& rng, void* dst) {
    for (long long i = 0; i < words; ++i) static_cast<unsigned*>(dst)[i] = rng.next_u32();
  };
}

// The calls share everything that a layer's do; the norms of heads are between products and turns.
FusedCase make_case(Problem p, bool has_norms) {
  p.embd = whole_k(p.type, p.embd);
  const DType bf16 = DType::bf16, f32 = DType::f32;
  const long long q_width = p.n_heads * p.head_dim, kv_width = p.n_kv_heads * p.head_dim;
  const long long page_stride = kv_width * kPageTokens;
  FusedCase c{.name = name_of_case(p, has_norms)};
  const int x = c.input("x", f32, p.n_rows * p.embd), norm = c.input("norm", f32, p.embd);
  const int w[3] = {c.weight("wq", p.type, q_width * p.embd),
                    c.weight("wk", p.type, kv_width * p.embd),
                    c.weight("wv", p.v_type, kv_width * p.embd)};
  const int head_norm[2] = {c.input("q_norm", f32, p.head_dim), c.input("k_norm", f32, p.head_dim)};
  const int positions = c.add({.name = "positions",
                               .type = DType::i32,
                               .elems = p.n_rows,
                               .fill = fill_index(p.n_rows, 40000)});
  const int turns = c.add({.name = "turns",
                           .type = DType::u8,
                           .elems = 4 * p.head_dim,
                           .fill = fill_bits(p.head_dim),
                           .align = 8});
  const int slots =
      c.add({.name = "slots", .type = DType::i32, .elems = p.n_rows, .fill = fill_slots(p.n_rows)});
  const int h = c.made("h", bf16, p.n_rows * p.embd);
  const int made[3] = {c.made("q_product", bf16, p.n_rows * q_width),
                       c.made("k_product", bf16, p.n_rows * kv_width),
                       c.made("v_product", bf16, p.n_rows * kv_width)};
  const int normed[2] = {c.made("q_normed", bf16, p.n_rows * q_width),
                         c.made("k_normed", bf16, p.n_rows * kv_width)};
  const int turned[2] = {c.made("q", bf16, p.n_rows * q_width, true),
                         c.made("k", bf16, p.n_rows * kv_width)};
  const int k_pages = c.changed("k_pages", bf16, kPages * page_stride);
  const int v_pages = c.changed("v_pages", bf16, kPages * page_stride);
  c.weights = has_norms ? std::vector{-1, w[0], w[1], w[2], -1, -1, -1, -1, -1}
                        : std::vector{-1, w[0], w[1], w[2], -1, -1, -1};
  c.bind = [=](std::span<void* const> port, std::span<ArgsBox> plain) {
    const auto at = [&](int i) { return port[static_cast<size_t>(i)]; };
    const auto floats = [&](int i) { return static_cast<const float*>(at(i)); };
    const auto ints = [&](int i) { return static_cast<const int*>(at(i)); };
    const long long widths[3] = {q_width, kv_width, kv_width};
    const long long heads[2] = {p.n_heads, p.n_kv_heads};
    size_t call = 0;
    put_args(plain[call++], rmsnorm::Args{.x = at(x),
                                          .weight = floats(norm),
                                          .y = at(h),
                                          .n_rows = p.n_rows,
                                          .n_groups = 1,
                                          .n = p.embd,
                                          .eps = 1e-6f,
                                          .x_type = f32,
                                          .y_type = bf16});
    for (int i = 0; i < 3; ++i)
      put_args(plain[call++], matmul::Args{.w = at(w[i]),
                                           .x = at(h),
                                           .y = at(made[i]),
                                           .n_rows = p.n_rows,
                                           .n = widths[i],
                                           .k = p.embd,
                                           .w_type = i < 2 ? p.type : p.v_type,
                                           .x_type = bf16,
                                           .y_type = bf16});
    for (int i = 0; i < 2 && has_norms; ++i)
      put_args(plain[call++], rmsnorm::Args{.x = at(made[i]),
                                            .weight = floats(head_norm[i]),
                                            .y = at(normed[i]),
                                            .n_rows = p.n_rows,
                                            .n_groups = heads[i],
                                            .n = p.head_dim,
                                            .eps = 1e-5f,
                                            .x_type = bf16,
                                            .y_type = bf16});
    for (int i = 0; i < 2; ++i)
      put_args(plain[call++], rope::Args{.x = at(has_norms ? normed[i] : made[i]),
                                         .positions = ints(positions),
                                         .turns = static_cast<const unsigned long long*>(at(turns)),
                                         .y = at(turned[i]),
                                         .n_rows = p.n_rows,
                                         .n_heads = heads[i],
                                         .head_dim = p.head_dim,
                                         .rot_dim = p.head_dim,
                                         .x_stride = widths[i],
                                         .y_stride = widths[i],
                                         .magnitude = 1.0f,
                                         .order = p.order,
                                         .type = bf16});
    put_args(plain[call], kv_store::Args{.k = at(turned[1]),
                                         .v = at(made[2]),
                                         .slots = ints(slots),
                                         .k_pages = at(k_pages),
                                         .v_pages = at(v_pages),
                                         .n_rows = p.n_rows,
                                         .n_kv_heads = p.n_kv_heads,
                                         .head_dim = p.head_dim,
                                         .x_stride = kv_width,
                                         .n_pages = kPages,
                                         .page_tokens = kPageTokens,
                                         .page_stride = page_stride,
                                         .x_type = bf16,
                                         .kv_type = bf16,
                                         .what = kv_store::Stored::both});
  };
  return c;
}

std::vector<FusedCase> all_cases(bool has_norms) {
  std::vector<FusedCase> out;
  for (const DType type : kFusedTypes) {
    out.push_back(make_case({type, 1, 32, 2, 1, 32}, has_norms));
    out.push_back(make_case({type, 4, 160, 3, 3, 64, rope::PairOrder::normal}, has_norms));
    out.push_back(make_case({type, 3, 2144, 4, 2, 128, rope::PairOrder::normal}, has_norms));
    out.push_back(make_case({type, 7, 96, 2, 1, 256}, has_norms));
    for (const long long rows : {1, 2, 5, 8})
      out.push_back(make_case({type, rows, 1024, 16, 8, 128}, has_norms));
  }
  out.push_back(make_case({DType::bf16, 2, 144, 2, 1, 64}, has_norms));
  for (const long long rows : {1, 8})
    out.push_back(make_case({.type = DType::q4_k,
                             .n_rows = rows,
                             .embd = 1024,
                             .n_heads = 16,
                             .n_kv_heads = 8,
                             .head_dim = 128,
                             .v_type = DType::q6_k},
                            has_norms));
  return out;
}

}  // namespace

std::vector<FusedCase> cases() {
  return all_cases(false);
}

std::vector<FusedCase> cases_with_head_norms() {
  return all_cases(true);
}

}  // namespace millrace::attention_input
