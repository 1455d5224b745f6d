// The named problems of quantize: groups of four blocks and what is left of them, ties, hostile
// values block by block, and the shapes of real models.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "kernels/case.h"
#include "kernels/quantize/floor.h"

namespace millrace::quantize {

struct Problem {
  long long n_rows, k;
  std::string_view data = "normal";
  bool timed = false;
};

// Blocks of very different size, each with values on the ties of its own scale, one in eight
// zero, denormal, or at the least usable magnitude.
inline void fill_ties(Rng& rng, float* x, long long n_blocks) {
  constexpr float kOdd[] = {0.0f, 0x1p-149f, 0x1p-130f, 0x1p-119f, 0x1.fffffep-120f, 3.4028235e38f};
  for (long long b = 0; b < n_blocks; ++b) {
    const float amax = rng.below(8) == 0 ? kOdd[rng.below(6)] : 127.0f * rng.uniform(0.001f, 9.0f);
    for (int i = 0; i < kBlock; ++i) {
      const auto halves = static_cast<float>(static_cast<int>(rng.below(509)) - 254);
      x[b * kBlock + i] = amax * (halves / 254.0f);
    }
    x[b * kBlock + static_cast<long long>(rng.below(kBlock))] = rng.below(2) == 0 ? amax : -amax;
  }
}

inline Fill fill_of(const Problem& p) {
  const long long elems = p.n_rows * p.k;
  if (p.data == "hostile") return fill_hostile(DType::f32, elems);
  if (p.data == "normal") return fill_normal(DType::f32, elems);
  return [=](Rng& rng, void* dst) { fill_ties(rng, static_cast<float*>(dst), elems / kBlock); };
}

inline Case make_case(const Problem& p) {
  const long long elems = p.n_rows * p.k;
  Case c;
  c.hostile = p.data == "hostile";
  c.name = fmt::format("{}x{}{}{}", p.n_rows, p.k, p.data == "normal" ? "" : "_",
                       p.data == "normal" ? "" : p.data);
  c.ports = {
      {.name = "x", .elems = elems, .row_elems = p.k, .fill = fill_of(p)},
      {.name = "y",
       .type = DType::q8_row,
       .elems = elems,
       .role = Role::out,
       .row_elems = p.k,
       .align = 4},
  };
  const auto args_of = [](const Problem& p, std::span<void* const> ptr) {
    return Args{static_cast<const float*>(ptr[0]), ptr[1], p.n_rows, p.k};
  };
  c.floor = floor_of(bind_rows(c, p, args_of, make_case));
  c.tolerance = {.exact = true};
  return c;
}

inline std::vector<Case> cases() {
  std::vector<Case> out;
  for (long long blocks : {1, 2, 3, 4, 5, 7, 18, 33})
    out.push_back(make_case({.n_rows = blocks == 5 ? 7 : 2, .k = blocks * kBlock}));
  out.push_back(make_case({.n_rows = 0, .k = 64}));
  for (std::string_view data : {"ties", "hostile"})
    for (long long blocks : {1, 6, 11})
      out.push_back(make_case({.n_rows = 9, .k = blocks * kBlock, .data = data}));
  for (long long rows : {1, 512})
    for (long long k : {576, 1024, 1536, 3072})
      out.push_back(make_case({.n_rows = rows, .k = k, .timed = true}));
  return out;
}

}  // namespace millrace::quantize
