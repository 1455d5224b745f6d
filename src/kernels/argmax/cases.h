// The named problems of argmax: tails, ties, zeros of both signs, NaN, and real vocabularies.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "kernels/argmax/floor.h"
#include "kernels/case.h"

namespace millrace::argmax {

struct Problem {
  long long n_rows, n;
  std::string_view data = "normal";
  bool timed = false;
};

inline float draw(std::string_view data, Rng& rng) {
  if (data == "ties") return static_cast<float>(rng.below(3));
  if (data == "zeros") return rng.below(8) == 0 ? 0.0f : -0.0f;
  if (data == "nans")
    return rng.below(30) == 0 ? -std::numeric_limits<float>::infinity() : std::nanf("");
  return rng.normal();
}

inline Fill fill_of(std::string_view data, long long elems) {
  if (data == "hostile") return fill_hostile(DType::f32, elems);
  return [=](Rng& rng, void* dst) {
    for (long long i = 0; i < elems; ++i) static_cast<float*>(dst)[i] = draw(data, rng);
  };
}

inline Case make_case(const Problem& p) {
  Case c;
  c.hostile = p.data == "hostile";
  c.name = fmt::format("{}x{}{}{}", p.n_rows, p.n, p.data == "normal" ? "" : "_",
                       p.data == "normal" ? "" : p.data);
  c.ports = {
      {.name = "x",
       .elems = p.n_rows * p.n,
       .row_elems = p.n,
       .fill = fill_of(p.data, p.n_rows * p.n)},
      {.name = "index", .type = DType::i32, .elems = p.n_rows, .role = Role::out, .row_elems = 1},
  };
  const auto args_of = [](const Problem& p, std::span<void* const> ptr) {
    return Args{static_cast<const float*>(ptr[0]), static_cast<int*>(ptr[1]), p.n_rows, p.n};
  };
  c.floor = floor_of(bind_rows(c, p, args_of, make_case));
  c.tolerance = {.exact = true};
  return c;
}

inline std::vector<Case> cases() {
  std::vector<Case> out;
  for (long long n : {1, 2, 7, 8, 31, 33, 1000}) out.push_back(make_case({.n_rows = 3, .n = n}));
  out.push_back(make_case({.n_rows = 0, .n = 16}));
  for (std::string_view data : {"hostile", "ties", "zeros", "nans"}) {
    out.push_back(make_case({.n_rows = 9, .n = 5, .data = data}));
    out.push_back(make_case({.n_rows = 5, .n = 77, .data = data}));
    out.push_back(make_case({.n_rows = 2, .n = 9001, .data = data}));  // in pieces, with a tail
  }
  for (long long n : {49152, 151936})
    out.push_back(make_case({.n_rows = 1, .n = n, .timed = true}));
  out.push_back(make_case({.n_rows = 64, .n = 151936, .timed = true}));
  return out;
}

}  // namespace millrace::argmax
