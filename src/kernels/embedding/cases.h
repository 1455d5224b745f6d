// The named problems of embedding: every format, tails, ids outside the table, a scale, hostile
// blocks, and the tables of real models.
#pragma once

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "kernels/case.h"
#include "kernels/embedding/floor.h"

namespace millrace::embedding {

struct Problem {
  long long n_rows, n, n_vocab;
  DType type = DType::f32;
  bool hostile = false;  // both ids and table
  float scale = 1;
  bool timed = false;
};

inline Fill fill_ids(const Problem& p) {
  if (!p.hostile) return fill_index(p.n_rows, p.n_vocab);
  return [p](Rng& rng, void* dst) {
    const int outside[] = {-1, static_cast<int>(p.n_vocab), std::numeric_limits<int>::min(),
                           std::numeric_limits<int>::max()};
    for (long long r = 0; r < p.n_rows; ++r)
      static_cast<int*>(dst)[r] =
          rng.below(3) == 0 ? outside[rng.below(4)]
                            : static_cast<int>(rng.below(static_cast<uint64_t>(p.n_vocab)));
  };
}

inline Fill fill_table(const Problem& p) {
  const long long elems = p.n_vocab * p.n;
  if (is_block_format(p.type)) return fill_blocks(p.type, elems, p.hostile);
  return p.hostile ? fill_hostile(p.type, elems) : fill_normal(p.type, elems);
}

inline Case make_case(const Problem& p) {
  Case c;
  c.hostile = p.hostile;
  c.name = fmt::format("{}x{}_of_{}_{}{}{}", p.n_rows, p.n, p.n_vocab, name_of(p.type),
                       p.scale != 1 ? "_scaled" : "", p.hostile ? "_hostile" : "");
  c.ports = {
      {.name = "table", .type = p.type, .elems = p.n_vocab * p.n, .fill = fill_table(p)},
      {.name = "ids", .type = DType::i32, .elems = p.n_rows, .row_elems = 1, .fill = fill_ids(p)},
      {.name = "y", .elems = p.n_rows * p.n, .role = Role::out, .row_elems = p.n},
  };
  const auto args_of = [](const Problem& p, std::span<void* const> ptr) {
    return Args{ptr[0],
                static_cast<const int*>(ptr[1]),
                static_cast<float*>(ptr[2]),
                p.n_rows,
                p.n,
                p.n_vocab,
                p.scale,
                p.type};
  };
  c.floor = floor_of(bind_rows(c, p, args_of, make_case));
  c.tolerance = {.exact = true};
  return c;
}

inline std::vector<Case> cases() {
  std::vector<Case> out;
  for (DType type : {DType::f32, DType::f16, DType::bf16})
    for (long long n : {1, 7, 8, 19, 1032})
      out.push_back(make_case({.n_rows = 3, .n = n, .n_vocab = 11, .type = type}));
  for (const Format& format : formats())
    for (bool hostile : {false, true})
      if (is_weight_format(format.type))
        out.push_back(make_case(
            {.n_rows = 13, .n = 256, .n_vocab = 5, .type = format.type, .hostile = hostile}));
  for (DType type : {DType::f32, DType::bf16, DType::q8_0, DType::q4_k})
    for (bool hostile : {false, true})
      out.push_back(make_case({.n_rows = 5,
                               .n = is_block_format(type) ? 256 : 259,
                               .n_vocab = 7,
                               .type = type,
                               .hostile = hostile,
                               .scale = 33.94f}));
  out.push_back(make_case({.n_rows = 0, .n = 32, .n_vocab = 4, .type = DType::q8_0}));
  for (long long rows : {1, 512}) {
    out.push_back(make_case(
        {.n_rows = rows, .n = 576, .n_vocab = 49152, .type = DType::q8_0, .timed = true}));
    out.push_back(make_case(
        {.n_rows = rows, .n = 1024, .n_vocab = 151936, .type = DType::q6_k, .timed = true}));
    out.push_back(make_case(
        {.n_rows = rows, .n = 1024, .n_vocab = 151936, .type = DType::bf16, .timed = true}));
    // The rows of a batch whose logits are wanted.
    out.push_back(
        make_case({.n_rows = rows, .n = 1024, .n_vocab = 512, .type = DType::f32, .timed = true}));
  }
  return out;
}

}  // namespace millrace::embedding
