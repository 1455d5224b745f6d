// The named problems of silu_mul: tails, in place, gates far out on both sides, hostile values, and
// the widths of real models.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "kernels/case.h"
#include "kernels/silu_mul/floor.h"

namespace millrace::silu_mul {

struct Problem {
  long long n_rows, n;
  bool hostile = false;
  bool in_place = false;  // y is gate
  float spread = 1.0f;    // of the gates
  bool timed = false;
  DType type = DType::f32;
};

inline Case make_case(const Problem& p) {
  const long long elems = p.n_rows * p.n;
  const auto fill = p.hostile ? fill_hostile(p.type, elems) : fill_normal(p.type, elems, p.spread);
  Case c;
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
  const auto args_of = [](const Problem& p, std::span<void* const> ptr) {
    return Args{ptr[0], ptr[1], ptr[p.in_place ? 0 : 2], p.n_rows, p.n, p.type};
  };
  c.floor = floor_of(bind_rows(c, p, args_of, make_case));
  // silu is within 2.5 units in the last place and the product rounds once more. Below -88.73 silu
  // is -0 where the truth is down to -1.3e-37: |up| stays below 8.
  c.tolerance = {.eps = 4 * 0x1p-23, .abs = 2e-36};
  if (p.type == DType::bf16) c.tolerance.eps += 0x1p-8;  // one rounding to 8 bits, and a near-tie
  return c;
}

inline std::vector<Case> cases() {
  std::vector<Case> out;
  for (DType type : {DType::f32, DType::bf16}) {
    const auto add = [&](Problem p) {
      p.type = type;
      out.push_back(make_case(p));
    };
    for (long long n : {1, 7, 8, 17, 100, 576}) add({.n_rows = 3, .n = n, .in_place = n == 100});
    add({.n_rows = 0, .n = 16});
    add({.n_rows = 5, .n = 77, .hostile = true});
    add({.n_rows = 2, .n = 300, .spread = 60.0f});
    for (long long rows : {1, 512})
      for (long long n : {1536, 3072}) add({.n_rows = rows, .n = n, .timed = true});
  }
  return out;
}

}  // namespace millrace::silu_mul
