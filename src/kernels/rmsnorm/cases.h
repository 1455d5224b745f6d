// The named problems of rmsnorm: edges, tails, hostile values, and the shapes of real models.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "kernels/case.h"
#include "kernels/rmsnorm/floor.h"

namespace millrace::rmsnorm {
struct Problem {
  long long n_rows, n;
  long long n_groups = 1;
  DType type = DType::f32;  // of x
  DType y_type = DType::f32;
  bool hostile = false;
  bool timed = false;
  bool in_place = false;
};

inline Case make_case(const Problem& p) {
  const long long row_elems = p.n_groups * p.n, elems = p.n_rows * row_elems;
  Case c;
  c.hostile = p.hostile;
  c.name = fmt::format("{}x{}{}_{}{}{}{}", p.n_rows,
                       p.n_groups > 1 ? fmt::format("{}x", p.n_groups) : "", p.n, name_of(p.type),
                       p.y_type == p.type ? "" : fmt::format("_to_{}", name_of(p.y_type)),
                       p.in_place ? "_in_place" : "", p.hostile ? "_hostile" : "");
  c.ports = {
      {.name = "x",
       .type = p.type,
       .elems = elems,
       .role = p.in_place ? Role::inout : Role::in,
       .row_elems = row_elems,
       .fill = p.hostile ? fill_hostile(p.type, elems) : fill_normal(p.type, elems)},
      {.name = "weight", .elems = p.n, .fill = fill_uniform(DType::f32, p.n, 0.5f, 1.5f)},
  };
  if (!p.in_place)
    c.ports.push_back(
        {.name = "y", .type = p.y_type, .elems = elems, .role = Role::out, .row_elems = row_elems});
  const auto args_of = [](const Problem& p, std::span<void* const> ptr) {
    return Args{ptr[0],
                static_cast<const float*>(ptr[1]),
                ptr[p.in_place ? 0 : 2],
                p.n_rows,
                p.n_groups,
                p.n,
                1e-6f,
                p.type,
                p.y_type};
  };
  c.floor = floor_of(bind_rows(c, p, args_of, make_case));
  // The sum's relative error is at most n/16 + 4 roundings, halved by the root; then five more
  // roundings. All of it is relative to |y|.
  c.tolerance = {.eps = (static_cast<double>(p.n) / 32 + 8) * 0x1p-24, .abs = 0x1p-149};
  return c;
}

inline std::vector<Case> cases() {
  std::vector<Case> out;
  struct Types {
    DType x, y;
  };
  for (const Types& types : {Types{DType::f32, DType::f32}, Types{DType::bf16, DType::bf16},
                             Types{DType::f32, DType::bf16}}) {
    const auto add = [&](Problem p) {
      p.type = types.x;
      p.y_type = types.y;
      out.push_back(make_case(p));
    };
    for (long long n : {1, 3, 15, 16, 17, 33, 100, 256, 257, 576, 1024})
      add({.n_rows = n == 33 ? 7 : 2, .n = n});
    add({.n_rows = 2, .n = 4112});
    for (long long n : {64, 128, 1030})
      if (types.x == types.y) add({.n_rows = 5, .n = n, .in_place = true});
    for (long long n : {1, 64, 100}) add({.n_rows = 3, .n = n, .n_groups = 5});
    add({.n_rows = 0, .n = 16});
    add({.n_rows = 5, .n = 77, .hostile = true});
    add({.n_rows = 5, .n = 300, .hostile = true});
    for (long long rows : {1, 512})
      for (long long n : {576, 1024, 2048}) add({.n_rows = rows, .n = n, .timed = true});
  }
  // The norms of heads: 16 query and 8 KV heads of one row, of 512 rows.
  for (long long rows : {16, 24 * 512})
    out.push_back(make_case(
        {.n_rows = rows, .n = 128, .type = DType::bf16, .y_type = DType::bf16, .timed = true}));
  return out;
}

}  // namespace millrace::rmsnorm
