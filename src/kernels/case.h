// A case: one named problem of an op, as data. It lists the buffers (ports), how to fill them, how
// to bind them into the op's Args, what the floor is and how close an output must come to the
// reference. Tests, selftest and bench all build their runs from it; the memory is theirs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/philox.h"
#include "kernels/kernel.h"
#include "tensor/dtype.h"

namespace millrace {

enum class Role {
  in,
  out,
  inout,   // read and overwritten in place
  weight,  // an input that a variant's layout may want packed; at most one per case
};

using Fill = std::function<void(Rng& rng, void* dst)>;

struct Port {
  std::string name;
  DType type = DType::f32;
  int64_t elems = 0;
  Role role = Role::in;
  // Elements that belong to one row of the batch: row r owns [r * row_elems, (r + 1) * row_elems).
  // 0: shared by all rows (weights, pages, tables).
  int64_t row_elems = 0;
  // Of them, the last ones that are nobody's: a call leaves them as they are.
  int64_t gap = 0;
  Fill fill = {};    // of inputs
  size_t align = 0;  // required of the pointer; 0: the element's own size
};

size_t bytes_of(const Port& port);

// How an output may differ from the reference:
//   |out - ref| <= eps * magnitude + abs + one unit in the last place of ref, in the port's type
// Two causes, two terms. What the arithmetic before the last rounding is off by is relative to the
// magnitude: the case's own (a sum of absolute products, say), or |ref| where it gives none; `eps`
// counts its roundings. The last rounding is relative to |ref| alone: two values that are as close
// as you like can lie on either side of a tie, and then differ by one unit.
struct Tolerance {
  double eps = 0;
  double abs = 0;
  bool exact = false;  // bit for bit, NaN equal to NaN
};

using Bind = std::function<void(std::span<void* const> ports, ArgsBox& args)>;

struct Case {
  std::string name;
  bool timed = false;  // a real model's shape that bench runs
  // NaN, Inf and extremes. A variant that takes a timed case takes one of these with the same types
  // too, where there is one: nobody declines what is hard and is timed on the rest.
  bool hostile = false;
  std::vector<Port> ports;
  Bind bind;
  // Fills the ports that follow from others (a list of work from positions), which are `in` and
  // shared by all rows; called when the others are filled, and again when their rows were changed.
  std::function<void(std::span<void* const> ports)> derive;
  Floor floor;
  Tolerance tolerance;
  // Fills `magnitudes` (one per element of output port `port`) from the bound args of the reference
  // run.
  std::function<void(const ArgsBox& args, size_t port, std::span<double> magnitudes)> magnitude;

  // Promise 1. The batch has n_rows rows; with_rows(m) is the same problem over m rows whose shared
  // ports are filled alike. Empty: the op has no rows.
  int64_t n_rows = 0;
  std::function<Case(int64_t n_rows)> with_rows;
};

// What every case over rows settles alike, once it has its ports: how they are bound, and the other
// batches of promise 1. Problem has n_rows and timed; args_of(problem, pointers) makes the op's
// Args. Returns those of no data, which is what a floor asks.
template <class Problem, class ArgsOf>
auto bind_rows(Case& c, const Problem& p, ArgsOf args_of, Case (*make_case)(const Problem&)) {
  c.timed = p.timed;
  c.n_rows = p.n_rows;
  c.bind = [=](std::span<void* const> ports, ArgsBox& box) { put_args(box, args_of(p, ports)); };
  c.with_rows = [=](int64_t n_rows) {
    Problem other = p;
    other.n_rows = n_rows;
    return make_case(other);
  };
  const std::vector<void*> none(c.ports.size());
  return args_of(p, std::span<void* const>(none));
}

// Fills for cases. Each draws from the given Rng alone, so a port's content is a function of the
// seed.
Fill fill_normal(DType type, int64_t elems, float stddev = 1.0f);  // f32, f16, bf16
Fill fill_uniform(DType type, int64_t elems, float lo, float hi);  // f32, f16, bf16
Fill fill_hostile(DType type, int64_t elems);  // NaN, +-Inf, denormals, +-0, huge, among normals
// Block formats: normals, encoded; if hostile, half of the blocks hold extreme integers and scales.
Fill fill_blocks(DType type, int64_t elems, bool hostile = false);
Fill fill_index(int64_t elems, int64_t below);  // i32 in [0, below)
Fill fill_zero(size_t bytes);

}  // namespace millrace
