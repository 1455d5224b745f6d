// The named problems of storing K and V: slots in any order, padding rows, strided rows, every pair
// of types, hostile values, and the shapes of real models.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/case.h"
#include "kernels/kv_store/floor.h"

namespace millrace::kv_store {

struct Problem {
  long long n_rows, n_kv_heads, head_dim;
  long long page_tokens = 16;
  DType x_type = DType::f32;
  DType kv_type = DType::f16;
  bool scattered = true;   // rows of many sequences; else one run of neighbouring slots
  long long gap = 0;       // elements between rows that belong to nobody
  long long page_gap = 0;  // the same between pages
  bool hostile = false;
  Stored what = Stored::both;
  bool timed = false;
};

inline long long n_pages_of(const Problem& p) {
  return p.n_rows / p.page_tokens + 3;
}

inline long long page_stride(const Problem& p) {
  const long long page = p.n_kv_heads * p.head_dim * p.page_tokens + p.page_gap;
  return (page + 31) / 32 * 32;  // 64 bytes
}

inline Fill fill_slots(const Problem& p) {
  return [=](Rng& rng, void* dst) {
    std::vector<int> slots(static_cast<size_t>(n_pages_of(p) * p.page_tokens));
    std::iota(slots.begin(), slots.end(), 0);
    for (size_t i = slots.size() - 1; i > 0 && p.scattered; --i)
      std::swap(slots[i], slots[rng.below(i + 1)]);
    for (long long r = 0; r < p.n_rows; ++r) {
      const bool padding = p.scattered && r % 5 == 3;
      static_cast<int*>(dst)[r] = padding ? -1 : slots[static_cast<size_t>(r) + 3];
    }
  };
}

inline std::vector<Port> ports_of(const Problem& p) {
  const long long stride = p.n_kv_heads * p.head_dim + p.gap, elems = p.n_rows * stride;
  const long long cache = n_pages_of(p) * page_stride(p);
  const Fill fill = p.hostile ? fill_hostile(p.x_type, elems) : fill_normal(p.x_type, elems);
  const Fill old = fill_normal(p.kv_type, cache);
  return {{.name = "k", .type = p.x_type, .elems = elems, .fill = fill},
          {.name = "v", .type = p.x_type, .elems = elems, .fill = fill},
          {.name = "slots", .type = DType::i32, .elems = p.n_rows, .fill = fill_slots(p)},
          {.name = "k_pages",
           .type = p.kv_type,
           .elems = cache,
           .role = Role::inout,
           .fill = old,
           .align = 64},
          {.name = "v_pages",
           .type = p.kv_type,
           .elems = cache,
           .role = Role::inout,
           .fill = old,
           .align = 64}};
}

inline Args args_of(const Problem& p, std::span<void* const> ptr) {
  return {.k = ptr[0],
          .v = ptr[1],
          .slots = static_cast<const int*>(ptr[2]),
          .k_pages = ptr[3],
          .v_pages = ptr[4],
          .n_rows = p.n_rows,
          .n_kv_heads = p.n_kv_heads,
          .head_dim = p.head_dim,
          .x_stride = p.n_kv_heads * p.head_dim + p.gap,
          .n_pages = n_pages_of(p),
          .page_tokens = p.page_tokens,
          .page_stride = page_stride(p),
          .x_type = p.x_type,
          .kv_type = p.kv_type,
          .what = p.what};
}

// A row's output is where its slot says, not at its own index: there is no with_rows. Rounding is
// exact, so conformance compares every byte of the cache, and says all that promise 1 would.
inline Case make_case(const Problem& p) {
  Case c;
  c.hostile = p.hostile;
  c.name = fmt::format("{}x{}x{}_page{}_{}_{}{}{}{}{}{}", p.n_rows, p.n_kv_heads, p.head_dim,
                       p.page_tokens, name_of(p.x_type), name_of(p.kv_type),
                       p.scattered ? "" : "_run", p.gap != 0 ? "_strided" : "",
                       p.page_gap != 0 ? "_apart" : "", p.hostile ? "_hostile" : "",
                       p.what == Stored::keys     ? "_keys"
                       : p.what == Stored::values ? "_values"
                                                  : "");
  c.timed = p.timed;
  c.ports = ports_of(p);
  c.bind = [p](std::span<void* const> ptr, ArgsBox& box) { put_args(box, args_of(p, ptr)); };
  void* const none[5] = {};
  c.floor = floor_of(args_of(p, none));
  c.tolerance.exact = true;
  return c;
}

inline std::vector<Case> cases() {
  std::vector<Case> out;
  for (DType x : {DType::f32, DType::bf16}) {
    for (DType kv : {DType::f32, DType::f16, DType::bf16}) {
      const auto add = [&](Problem p) {
        p.x_type = x;
        p.kv_type = kv;
        out.push_back(make_case(p));
      };
      for (long long dim : {1, 8, 20, 64, 80, 128})
        add({.n_rows = 7, .n_kv_heads = 3, .head_dim = dim});
      add({.n_rows = 1, .n_kv_heads = 1, .head_dim = 64});
      add({.n_rows = 41, .n_kv_heads = 2, .head_dim = 64, .page_tokens = 32});
      add({.n_rows = 70, .n_kv_heads = 2, .head_dim = 24, .page_tokens = 32, .scattered = false});
      add({.n_rows = 9, .n_kv_heads = 2, .head_dim = 40, .page_tokens = 64, .gap = 3});
      add({.n_rows = 9, .n_kv_heads = 2, .head_dim = 40, .page_gap = 96});
      add({.n_rows = 9, .n_kv_heads = 2, .head_dim = 40, .hostile = true});
      add({.n_rows = 0, .n_kv_heads = 2, .head_dim = 64});
      for (const Stored what : {Stored::keys, Stored::values})
        add({.n_rows = 9, .n_kv_heads = 2, .head_dim = 40, .what = what});
    }
  }
  for (long long rows : {1, 512}) {
    const bool scattered = false, timed = true;
    out.push_back(make_case(
        {rows, 3, 64, 64, DType::f32, DType::f16, scattered, 0, 0, false, Stored::both, timed}));
    out.push_back(make_case(
        {rows, 8, 128, 64, DType::f32, DType::f16, scattered, 0, 0, false, Stored::both, timed}));
    out.push_back(make_case(
        {rows, 8, 128, 64, DType::f32, DType::bf16, scattered, 0, 0, false, Stored::both, timed}));
    out.push_back(make_case(
        {rows, 8, 128, 64, DType::bf16, DType::bf16, scattered, 0, 0, false, Stored::both, timed}));
  }
  return out;
}

}  // namespace millrace::kv_store
