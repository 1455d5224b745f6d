// The named problems of expert_sum: tails, one expert, with and without normalising, and the widths
// of a real model.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "kernels/case.h"
#include "kernels/expert_sum/floor.h"

namespace millrace::expert_sum {

struct Problem {
  long long n_rows, n_used, n;
  bool normalise = false;
  bool timed = false;
};

inline void magnitude(const ArgsBox& box, size_t, std::span<double> out) {
  const Args& a = *reinterpret_cast<const Args*>(box.bytes);
  for (long long r = 0; r < a.n_rows; ++r)
    for (long long i = 0; i < a.n; ++i) {
      double sum = 0, weights = 0;
      for (long long j = 0; j < a.n_used; ++j) {
        const double weight = a.weights[r * a.n_used + j];
        weights += weight;
        sum += std::fabs(weight * a.x[(r * a.n_used + j) * a.n + i]);
      }
      out[static_cast<size_t>(r * a.n + i)] = a.normalise ? sum / weights : sum;
    }
}

inline Case make_case(const Problem& p) {
  const long long elems = p.n_rows * p.n_used * p.n;
  Case c;
  c.name = fmt::format("{}x{}x{}{}", p.n_rows, p.n_used, p.n, p.normalise ? "_normalised" : "");
  c.timed = p.timed;
  c.ports = {
      {.name = "x",
       .elems = elems,
       .row_elems = p.n_used * p.n,
       .fill = fill_normal(DType::f32, elems)},
      {.name = "weights",
       .elems = p.n_rows * p.n_used,
       .row_elems = p.n_used,
       .fill = fill_uniform(DType::f32, p.n_rows * p.n_used, 0.01f, 1.0f)},
      {.name = "y", .elems = p.n_rows * p.n, .role = Role::out, .row_elems = p.n},
  };
  const auto args_of = [p](std::span<void* const> ptr) {
    return Args{static_cast<const float*>(ptr[0]),
                static_cast<const float*>(ptr[1]),
                static_cast<float*>(ptr[2]),
                p.n_rows,
                p.n_used,
                p.n,
                p.normalise};
  };
  c.bind = [=](std::span<void* const> ptr, ArgsBox& box) { put_args(box, args_of(ptr)); };
  void* const none[3] = {};
  c.floor = floor_of(args_of(none));
  c.tolerance = {.eps = static_cast<double>(2 * p.n_used + 4) * 0x1p-24};
  c.magnitude = magnitude;
  c.n_rows = p.n_rows;
  c.with_rows = [p](int64_t rows) {
    Problem q = p;
    q.n_rows = rows;
    return make_case(q);
  };
  return c;
}

inline std::vector<Case> cases() {
  std::vector<Case> out;
  for (long long n : {1, 7, 8, 17, 100})
    for (bool normalise : {false, true}) out.push_back(make_case({3, 2, n, normalise}));
  out.push_back(make_case({4, 1, 33, true}));
  out.push_back(make_case({0, 2, 16}));
  for (long long rows : {1, 512}) out.push_back(make_case({rows, 8, 2048, true, true}));
  return out;
}

}  // namespace millrace::expert_sum
