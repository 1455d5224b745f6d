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
  DType type = DType::f32;
  bool hostile = false;
  bool timed = false;
};

inline Case make_case(const Problem& p) {
  const long long row_elems = p.n_groups * p.n, elems = p.n_rows * row_elems;
  Case c;
  c.name =
      fmt::format("{}x{}{}_{}{}", p.n_rows, p.n_groups > 1 ? fmt::format("{}x", p.n_groups) : "",
                  p.n, name_of(p.type), p.hostile ? "_hostile" : "");
  c.ports = {
      {.name = "x",
       .type = p.type,
       .elems = elems,
       .role = Role::in,
       .row_elems = row_elems,
       .fill = p.hostile ? fill_hostile(p.type, elems) : fill_normal(p.type, elems)},
      {.name = "weight", .elems = p.n, .fill = fill_uniform(DType::f32, p.n, 0.5f, 1.5f)},
      {.name = "y", .type = p.type, .elems = elems, .role = Role::out, .row_elems = row_elems},
  };
  const auto args_of = [](const Problem& p, std::span<void* const> ptr) {
    return Args{
        ptr[0], static_cast<const float*>(ptr[1]), ptr[2], p.n_rows, p.n_groups, p.n, 1e-6f, p.type,
        p.type};
  };
  c.floor = floor_of(bind_rows(c, p, args_of, make_case));
  // The sum's relative error is at most n/16 + 4 roundings, halved by the root; then five more
  // roundings.
  c.tolerance = {.eps = (static_cast<double>(p.n) / 32 + 8) * 0x1p-24, .abs = 0x1p-149};
  if (p.type == DType::bf16) c.tolerance.eps += 0x1p-8;  // one rounding to 8 bits, and a near-tie
  return c;
}

inline std::vector<Case> cases() {
  std::vector<Case> out;
  for (DType type : {DType::f32, DType::bf16}) {
    for (long long n : {1, 3, 15, 16, 17, 33, 100, 576, 1024})
      out.push_back(make_case({.n_rows = n == 33 ? 7 : 2, .n = n, .type = type}));
    for (long long n : {1, 64, 100})
      out.push_back(make_case({.n_rows = 3, .n = n, .n_groups = 5, .type = type}));
    out.push_back(make_case({.n_rows = 0, .n = 16, .type = type}));
    out.push_back(make_case({.n_rows = 5, .n = 77, .type = type, .hostile = true}));
    for (long long rows : {1, 512})
      for (long long n : {576, 1024, 2048})
        out.push_back(make_case({.n_rows = rows, .n = n, .type = type, .timed = true}));
  }
  return out;
}

}  // namespace millrace::rmsnorm
