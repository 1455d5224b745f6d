// The named problems of topk: every path of the selection (few and many survivors, k near n),
// tails, orders and ties that defeat a threshold, hostile values, and the shapes of real uses.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "kernels/case.h"
#include "kernels/topk/floor.h"

namespace millrace::topk {

struct Problem {
  long long n_rows, n, k;
  std::string_view data = "normal";
  bool timed = false;
};

inline float draw(std::string_view data, Rng& rng, long long i) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  if (data == "ties") return static_cast<float>(rng.below(4)) - 1.0f;
  if (data == "zeros") return rng.below(2) == 0 ? 0.0f : -0.0f;
  if (data == "nans") return std::nanf("");
  if (data == "masked") return rng.below(50) == 0 ? rng.normal() : -kInf;
  if (data == "ascending") return static_cast<float>(i);
  if (data == "descending") return -static_cast<float>(i);
  if (data == "spikes") return rng.below(20) == 0 ? 3e38f * rng.uniform() : 1e-38f * rng.normal();
  return rng.normal();
}

inline Fill fill_of(std::string_view data, long long elems) {
  if (data == "hostile") return fill_hostile(DType::f32, elems);
  return [=](Rng& rng, void* dst) {
    for (long long i = 0; i < elems; ++i) static_cast<float*>(dst)[i] = draw(data, rng, i);
  };
}

inline Case make_case(const Problem& p) {
  Case c;
  c.hostile = p.data == "hostile";
  c.name = fmt::format("{}x{}_k{}{}{}", p.n_rows, p.n, p.k, p.data == "normal" ? "" : "_",
                       p.data == "normal" ? "" : p.data);
  c.ports = {
      {.name = "x",
       .elems = p.n_rows * p.n,
       .row_elems = p.n,
       .fill = fill_of(p.data, p.n_rows * p.n)},
      {.name = "values", .elems = p.n_rows * p.k, .role = Role::out, .row_elems = p.k},
      {.name = "indices",
       .type = DType::i32,
       .elems = p.n_rows * p.k,
       .role = Role::out,
       .row_elems = p.k},
  };
  const auto args_of = [](const Problem& p, std::span<void* const> ptr) {
    return Args{static_cast<const float*>(ptr[0]),
                static_cast<float*>(ptr[1]),
                static_cast<int*>(ptr[2]),
                p.n_rows,
                p.n,
                p.k};
  };
  c.floor = floor_of(bind_rows(c, p, args_of, make_case));
  c.tolerance = {.exact = true};
  return c;
}

inline std::vector<Case> cases() {
  const std::vector<Problem> problems = {
      {1, 1, 1},
      {2, 5, 5},
      {3, 7, 3},
      {2, 8, 1},
      {0, 16, 4},
      {2, 100, 1},
      {2, 129, 129},
      {3, 1000, 64},
      {1, 1023, 40},
      {2, 4099, 37},
      {1, 3000, 700},
      {1, 9001, 700},
      {3, 777, 50, "hostile"},
      {2, 2000, 1990, "hostile"},
      {3, 1000, 64, "ties"},
      {1, 5000, 300, "ties"},
      {2, 500, 33, "zeros"},
      {2, 300, 20, "nans"},
      {3, 2000, 64, "masked"},
      {1, 2000, 8, "masked"},
      {2, 3000, 64, "ascending"},
      {2, 3000, 64, "descending"},
      {2, 3000, 200, "spikes"},
      {.n_rows = 64, .n = 128, .k = 8, .timed = true},  // routing tokens to experts
      {.n_rows = 1, .n = 1024, .k = 64, .timed = true},
      // Enough rows that a branch predictor cannot learn their order, as it does one row's.
      {.n_rows = 256, .n = 1024, .k = 64, .timed = true},
      {.n_rows = 1, .n = 131072, .k = 2048, .timed = true},  // sparse attention's choice of tokens
      {.n_rows = 1, .n = 49152, .k = 40, .timed = true},     // sampling
      {.n_rows = 1, .n = 151936, .k = 64, .timed = true},
      {.n_rows = 1, .n = 151936, .k = 64, .data = "masked", .timed = true},
  };
  std::vector<Case> out;
  for (const Problem& p : problems) out.push_back(make_case(p));
  return out;
}

}  // namespace millrace::topk
