// The named problems of add: tails, in place, hostile values, and the widths of real models.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "kernels/add/floor.h"
#include "kernels/case.h"

namespace millrace::add {

struct Problem {
  long long n_rows, n;
  bool hostile = false;
  bool in_place = false;  // y is a
  bool bias = false;
  bool timed = false;
};

inline Case make_case(const Problem& p) {
  const long long elems = p.n_rows * p.n;
  const auto fill = p.hostile ? fill_hostile(DType::f32, elems) : fill_normal(DType::f32, elems);
  Case c;
  c.name = fmt::format("{}x{}{}{}{}", p.n_rows, p.n, p.bias ? "_bias" : "",
                       p.in_place ? "_in_place" : "", p.hostile ? "_hostile" : "");
  c.ports = {
      {.name = "a",
       .elems = elems,
       .role = p.in_place ? Role::inout : Role::in,
       .row_elems = p.n,
       .fill = fill},
      {.name = "b",
       .elems = p.bias ? p.n : elems,
       .row_elems = p.bias ? 0 : p.n,
       .fill = p.bias ? fill_normal(DType::f32, p.n) : fill},
  };
  if (!p.in_place)
    c.ports.push_back({.name = "y", .elems = elems, .role = Role::out, .row_elems = p.n});
  const auto args_of = [](const Problem& p, std::span<void* const> ptr) {
    return Args{static_cast<const float*>(ptr[0]),
                static_cast<const float*>(ptr[1]),
                static_cast<float*>(ptr[p.in_place ? 0 : 2]),
                p.n_rows,
                p.n,
                p.bias};
  };
  c.floor = floor_of(bind_rows(c, p, args_of, make_case));
  c.tolerance = {.exact = true};
  return c;
}

inline std::vector<Case> cases() {
  std::vector<Case> out;
  for (long long n : {1, 7, 8, 17, 100, 576})
    for (bool bias : {false, true})
      out.push_back(make_case({.n_rows = 3, .n = n, .in_place = n == 100, .bias = bias}));
  out.push_back(make_case({.n_rows = 0, .n = 16}));
  out.push_back(make_case({.n_rows = 5, .n = 77, .hostile = true}));
  for (long long rows : {1, 512})
    for (long long n : {576, 1024})
      out.push_back(make_case({.n_rows = rows, .n = n, .timed = true}));
  return out;
}

}  // namespace millrace::add
