// The named problems of the rotary embedding: both pair orders, partial rotation, strided rows, in
// place and not, far positions, hostile values, and the shapes of real models.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/case.h"
#include "kernels/rope/floor.h"
#include "kernels/rope/frequencies.h"
#include "kernels/rope/op.h"

namespace millrace::rope {

struct Problem {
  long long n_rows, n_heads, head_dim, rot_dim;
  PairOrder order = PairOrder::normal;
  DType type = DType::f32;
  Scaling scaling = {};
  bool in_place = false;
  long long gap = 0;  // elements between rows that belong to nobody
  bool hostile = false;
  bool timed = false;
};

inline std::string name_of(const Problem& p) {
  return fmt::format("{}x{}x{}_{}{}{}{}{}{}{}", p.n_rows, p.n_heads, p.head_dim, name_of(p.type),
                     p.rot_dim == p.head_dim ? "" : fmt::format("_rot{}", p.rot_dim),
                     p.order == PairOrder::neox ? "_neox" : "",
                     p.scaling.ext_factor != 0 ? "_yarn" : "", p.in_place ? "_in_place" : "",
                     p.gap != 0 ? "_strided" : "", p.hostile ? "_hostile" : "");
}

// Near positions and far ones: the last of a 128k context, and the ends of the type.
inline Fill fill_positions(long long n_rows) {
  return [=](Rng& rng, void* dst) {
    constexpr int kFar[] = {0, 1, 131071, 2147483647, -1};
    for (long long r = 0; r < n_rows; ++r)
      static_cast<int*>(dst)[r] =
          r < 5 ? kFar[r] : static_cast<int>(rng.below(r % 2 == 0 ? 131072 : 512));
  };
}

inline Fill fill_turns(const Problem& p) {
  return [=](Rng&, void* dst) {
    const auto turns = make_frequencies(p.rot_dim, p.scaling).value().turns;
    std::copy(turns.begin(), turns.end(), static_cast<unsigned long long*>(dst));
  };
}

inline std::vector<Port> ports_of(const Problem& p) {
  const long long stride = p.n_heads * p.head_dim + p.gap, elems = p.n_rows * stride;
  const Fill fill = p.hostile ? fill_hostile(p.type, elems) : fill_normal(p.type, elems);
  const Port turns{.name = "turns",
                   .type = DType::u8,
                   .elems = 4 * p.rot_dim,
                   .fill = fill_turns(p),
                   .align = 8};
  std::vector<Port> ports = {{.name = "positions",
                              .type = DType::i32,
                              .elems = p.n_rows,
                              .row_elems = 1,
                              .fill = fill_positions(p.n_rows)},
                             turns,
                             {.name = "x",
                              .type = p.type,
                              .elems = elems,
                              .role = p.in_place ? Role::inout : Role::in,
                              .row_elems = stride,
                              .gap = p.gap,
                              .fill = fill}};
  if (!p.in_place)
    ports.push_back({.name = "y",
                     .type = p.type,
                     .elems = elems,
                     .role = Role::out,
                     .row_elems = stride,
                     .gap = p.gap});
  return ports;
}

inline Args args_of(const Problem& p, std::span<void* const> ptr) {
  const long long stride = p.n_heads * p.head_dim + p.gap;
  return {.x = ptr[2],
          .positions = static_cast<const int*>(ptr[0]),
          .turns = static_cast<const unsigned long long*>(ptr[1]),
          .y = ptr[p.in_place ? 2 : 3],
          .n_rows = p.n_rows,
          .n_heads = p.n_heads,
          .head_dim = p.head_dim,
          .rot_dim = p.rot_dim,
          .x_stride = stride,
          .y_stride = stride,
          .magnitude = make_frequencies(p.rot_dim, p.scaling).value().magnitude,
          .order = p.order,
          .type = p.type};
}

inline Case make_case(const Problem& p) {
  Case c;
  c.hostile = p.hostile;
  c.name = name_of(p);
  c.ports = ports_of(p);
  c.floor = floor_of(bind_rows(c, p, args_of, make_case));
  // The angle is off by 4e-7 rad and four roundings follow, relative to |x0| + |x1|: the two
  // products may cancel.
  c.tolerance = {.eps = 4e-7 + 4 * 0x1p-24, .abs = 0x1p-148};
  c.magnitude = [](const ArgsBox& box, size_t, std::span<double> out) {
    reference::magnitudes(*reinterpret_cast<const Args*>(box.bytes), out);
  };
  return c;
}

inline constexpr Scaling kYarn = {
    .freq_base = 1e6, .freq_scale = 0.25, .ext_factor = 1, .orig_ctx = 32768};

inline std::vector<Case> cases() {
  std::vector<Case> out;
  for (DType type : {DType::f32, DType::bf16}) {
    for (PairOrder order : {PairOrder::normal, PairOrder::neox}) {
      const auto add = [&](Problem p) {
        p.type = type;
        p.order = order;
        out.push_back(make_case(p));
      };
      for (long long dim : {2, 6, 16, 22, 64, 80, 96, 128, 256})
        add({.n_rows = dim == 64 ? 9 : 3, .n_heads = 3, .head_dim = dim, .rot_dim = dim});
      add({.n_rows = 6, .n_heads = 2, .head_dim = 80, .rot_dim = 20, .in_place = true});
      add({.n_rows = 6, .n_heads = 2, .head_dim = 128, .rot_dim = 128, .scaling = kYarn});
      add({.n_rows = 7, .n_heads = 3, .head_dim = 64, .rot_dim = 64, .in_place = true, .gap = 5});
      add({.n_rows = 9, .n_heads = 3, .head_dim = 40, .rot_dim = 22, .hostile = true});
      add({.n_rows = 0, .n_heads = 1, .head_dim = 64, .rot_dim = 64});
      for (long long rows : {1, 512}) {
        add({.n_rows = rows, .n_heads = 12, .head_dim = 64, .rot_dim = 64, .timed = true});
        add({.n_rows = rows, .n_heads = 24, .head_dim = 128, .rot_dim = 128, .timed = true});
      }
    }
  }
  return out;
}

}  // namespace millrace::rope
