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
  DType a_type = DType::f32, b_type = DType::f32, y_type = DType::f32;
};

inline std::string name_of(const Problem& p) {
  std::string name = fmt::format("{}x{}{}{}{}", p.n_rows, p.n, p.bias ? "_bias" : "",
                                 p.in_place ? "_in_place" : "", p.hostile ? "_hostile" : "");
  for (DType type : {p.a_type, p.b_type, p.y_type})
    if (p.a_type != DType::f32 || p.b_type != DType::f32 || p.y_type != DType::f32)
      name += fmt::format("_{}", name_of(type));
  return name;
}

inline Fill fill_of(const Problem& p, DType type, long long elems) {
  return p.hostile ? fill_hostile(type, elems) : fill_normal(type, elems);
}

inline Case make_case(const Problem& p) {
  const long long elems = p.n_rows * p.n, b_elems = p.bias ? p.n : elems;
  Case c;
  c.hostile = p.hostile;
  c.name = name_of(p);
  c.ports = {
      {.name = "a",
       .type = p.a_type,
       .elems = elems,
       .role = p.in_place ? Role::inout : Role::in,
       .row_elems = p.n,
       .fill = fill_of(p, p.a_type, elems)},
      {.name = "b",
       .type = p.b_type,
       .elems = b_elems,
       .row_elems = p.bias ? 0 : p.n,
       .fill = p.bias ? fill_normal(p.b_type, b_elems) : fill_of(p, p.b_type, b_elems)},
  };
  if (!p.in_place)
    c.ports.push_back(
        {.name = "y", .type = p.y_type, .elems = elems, .role = Role::out, .row_elems = p.n});
  const auto args_of = [](const Problem& p, std::span<void* const> ptr) {
    return Args{.a = ptr[0],
                .b = ptr[1],
                .y = ptr[p.in_place ? 0 : 2],
                .n_rows = p.n_rows,
                .n = p.n,
                .is_bias = p.bias,
                .a_type = p.a_type,
                .b_type = p.b_type,
                .y_type = p.y_type};
  };
  c.floor = floor_of(bind_rows(c, p, args_of, make_case));
  c.tolerance = {.exact = true};
  return c;
}

// What a device has: a bias on bf16 activations, a bf16 product onto the f32 residual stream.
inline void add_typed(std::vector<Case>& out) {
  const DType f32 = DType::f32, bf16 = DType::bf16;
  struct Types {
    DType a, b, y;
  };
  const auto add = [&](Problem p, const Types& t) {
    p.a_type = t.a;
    p.b_type = t.b;
    p.y_type = t.y;
    out.push_back(make_case(p));
  };
  for (const Types& t : {Types{bf16, f32, bf16}, Types{f32, bf16, f32}, Types{f32, f32, bf16},
                         Types{bf16, bf16, f32}}) {
    for (long long n : {1, 9, 136})
      for (bool bias : {false, true})
        add({.n_rows = 3, .n = n, .in_place = n == 136 && t.a == t.y, .bias = bias}, t);
    add({.n_rows = 5, .n = 77, .hostile = true}, t);
    add({.n_rows = 0, .n = 8}, t);
  }
  for (long long rows : {1, 512}) {
    add({.n_rows = rows, .n = 1024, .timed = true}, {f32, bf16, f32});
    add({.n_rows = rows, .n = 1152, .bias = true, .timed = true}, {bf16, f32, bf16});
  }
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
  add_typed(out);
  return out;
}

}  // namespace millrace::add
