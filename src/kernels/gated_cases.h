// What the cases of every gated activation share (silu_mul, gelu_mul): tails, in place, gates far
// out on both sides, hostile values, and the widths of real models. The folder adds its floor and
// its tolerance.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "kernels/case.h"

namespace millrace {

struct GatedProblem {
  long long n_rows, n;
  bool hostile = false;
  bool in_place = false;  // y is gate
  float spread = 1.0f;    // of the gates
  bool timed = false;
  DType type = DType::f32;
};

// The name and the ports: gate, up and, unless in place, y.
inline Case gated_ports(const GatedProblem& p) {
  const long long elems = p.n_rows * p.n;
  const auto fill = p.hostile ? fill_hostile(p.type, elems) : fill_normal(p.type, elems, p.spread);
  Case c;
  c.hostile = p.hostile;
  c.name = fmt::format("{}x{}{}{}{}{}", p.n_rows, p.n, p.type == DType::f32 ? "" : "_bf16",
                       p.in_place ? "_in_place" : "", p.hostile ? "_hostile" : "",
                       p.spread != 1.0f ? "_wide" : "");
  c.ports = {
      {.name = "gate",
       .type = p.type,
       .elems = elems,
       .role = p.in_place ? Role::inout : Role::in,
       .row_elems = p.n,
       .fill = fill},
      {.name = "up",
       .type = p.type,
       .elems = elems,
       .row_elems = p.n,
       .fill = fill_normal(p.type, elems)},
  };
  if (!p.in_place)
    c.ports.push_back(
        {.name = "y", .type = p.type, .elems = elems, .role = Role::out, .row_elems = p.n});
  return c;
}

template <class Args>
Args gated_args(const GatedProblem& p, std::span<void* const> ptr) {
  return {ptr[0], ptr[1], ptr[p.in_place ? 0 : 2], p.n_rows, p.n, p.type};
}

// `spread`: of the gates that reach where the activation is 0. `widths`: of real models.
inline std::vector<Case> gated_cases(Case (*make_case)(const GatedProblem&), float spread,
                                     std::span<const long long> widths) {
  std::vector<Case> out;
  for (const DType type : {DType::f32, DType::bf16}) {
    const auto add = [&](GatedProblem p) {
      p.type = type;
      out.push_back(make_case(p));
    };
    for (long long n : {1, 7, 8, 17, 100, 576}) add({.n_rows = 3, .n = n, .in_place = n == 100});
    add({.n_rows = 0, .n = 16});
    add({.n_rows = 5, .n = 77, .hostile = true});
    add({.n_rows = 2, .n = 300, .spread = spread});
    for (long long rows : {1, 512})
      for (long long n : widths) add({.n_rows = rows, .n = n, .timed = true});
  }
  return out;
}

}  // namespace millrace
