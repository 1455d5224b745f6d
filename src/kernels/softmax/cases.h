// The named problems of softmax: tails, in place, spread out rows, hostile values, and real
// vocabularies.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "kernels/case.h"
#include "kernels/softmax/floor.h"

namespace millrace::softmax {

struct Problem {
  long long n_rows, n;
  float spread = 1.0f;  // standard deviation of x
  float scale = 1.0f;
  bool hostile = false;
  bool in_place = false;
  bool timed = false;
};

inline Case make_case(const Problem& p) {
  const long long elems = p.n_rows * p.n;
  Case c;
  c.hostile = p.hostile;
  c.name = fmt::format("{}x{}{}{}{}{}", p.n_rows, p.n, p.in_place ? "_in_place" : "",
                       p.hostile ? "_hostile" : "", p.spread != 1.0f ? "_wide" : "",
                       p.scale != 1.0f ? "_scaled" : "");
  c.ports = {
      {.name = "x",
       .elems = elems,
       .role = p.in_place ? Role::inout : Role::in,
       .row_elems = p.n,
       .fill =
           p.hostile ? fill_hostile(DType::f32, elems) : fill_normal(DType::f32, elems, p.spread)},
  };
  if (!p.in_place)
    c.ports.push_back({.name = "y", .elems = elems, .role = Role::out, .row_elems = p.n});
  const auto args_of = [](const Problem& p, std::span<void* const> ptr) {
    return Args{static_cast<const float*>(ptr[0]), static_cast<float*>(ptr[p.in_place ? 0 : 1]),
                p.n_rows, p.n, p.scale};
  };
  c.floor = floor_of(bind_rows(c, p, args_of, make_case));
  // The argument t of an exponential is off by two roundings, so exp(t) by |t| of them: what counts
  // lies within 104 of the largest. Then the sum's n/16 + 4, and four more.
  c.tolerance = {.eps = (2 * 104 + static_cast<double>(p.n) / 16 + 8) * 0x1p-24, .abs = 0x1p-148};
  return c;
}

inline std::vector<Case> cases() {
  std::vector<Case> out;
  for (long long n : {1, 3, 8, 15, 16, 17, 100, 1000})
    out.push_back(make_case({.n_rows = 3, .n = n, .in_place = n == 100}));
  out.push_back(make_case({.n_rows = 0, .n = 16}));
  out.push_back(make_case({.n_rows = 2, .n = 500, .spread = 30.0f}));
  out.push_back(make_case({.n_rows = 2, .n = 500, .scale = 1.0f / 0.7f}));
  for (long long n : {3, 77}) out.push_back(make_case({.n_rows = 9, .n = n, .hostile = true}));
  for (long long n : {49152, 151936})
    out.push_back(make_case({.n_rows = 1, .n = n, .timed = true}));
  return out;
}

}  // namespace millrace::softmax
