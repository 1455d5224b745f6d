// An op for tests of the lab itself: y = 2 x, with variants that are right, wrong in several ways,
// and slow. Not in the table of ops.
#pragma once

#include <array>
#include <atomic>

#include "kernels/case.h"
#include "lab/bench.h"

namespace millrace::lab::toy {

struct Args {
  const float* x;
  float* y;
  long long n;
};

inline const Args& args_of(const void* args) {
  return *static_cast<const Args*>(args);
}

inline Status twice(const void* args, Exec& exec) {
  const Args& a = args_of(args);
  const Share mine = exec.share(a.n);
  for (long long i = mine.begin; i < mine.end; ++i) a.y[i] = 2 * a.x[i];
  return {};
}

// Wrong always.
inline Status thrice(const void* args, Exec& exec) {
  const Args& a = args_of(args);
  const Share mine = exec.share(a.n);
  for (long long i = mine.begin; i < mine.end; ++i) a.y[i] = 3 * a.x[i];
  return {};
}

// Within the tolerance, and not the class's bits.
inline Status nearly(const void* args, Exec& exec) {
  const Args& a = args_of(args);
  const Share mine = exec.share(a.n);
  for (long long i = mine.begin; i < mine.end; ++i) a.y[i] = 2 * a.x[i] * (1 + 0x1p-23f);
  return {};
}

// Right while it is verified; after so many calls it stops writing, as a cheat would.
inline std::atomic<int> calls_left{0};
inline Status lazy(const void* args, Exec& exec) {
  if (exec.lane == 0 && calls_left.fetch_sub(1) <= 0) return {};
  Exec alone;
  return exec.lane == 0 ? twice(args, alone) : Status();
}

inline Status fails(const void*, Exec&) {
  return error(Code::unsupported, "this one never works");
}

inline std::span<const Variant> variants() {
  static constexpr std::array kVariants = {
      Variant{.name = "twice", .numerics = "toy.twice", .run = twice},
      Variant{.name = "thrice", .numerics = "toy.thrice", .run = thrice},
      Variant{.name = "nearly", .numerics = "toy.twice", .run = nearly},
      Variant{.name = "lazy", .numerics = "toy.lazy", .run = lazy},
      Variant{.name = "fails", .numerics = "toy.fails", .run = fails},
      Variant{.name = "again", .numerics = "toy.twice", .run = twice},
      Variant{.name = "reference", .numerics = kReference, .run = twice},
  };
  return kVariants;
}

inline Case make_case(long long n) {
  Case c;
  c.name = fmt::format("toy_{}", n);
  c.ports = {{.name = "x", .elems = n, .fill = fill_normal(DType::f32, n)},
             {.name = "y", .elems = n, .role = Role::out}};
  c.bind = [n](std::span<void* const> p, ArgsBox& box) {
    put_args(box, Args{static_cast<const float*>(p[0]), static_cast<float*>(p[1]), n});
  };
  c.floor = {.read_bytes = 4.0 * static_cast<double>(n),
             .write_bytes = 4.0 * static_cast<double>(n)};
  c.tolerance = {.eps = 1e-6};
  return c;
}

inline const Op kOp = {
    .name = "toy",
    .variants = variants,
    .cases = [] { return std::vector<Case>{make_case(1000)}; },
    .validate = [](const void*) { return Status(); },
    .key = [](const void* args) { return fmt::format("n={}", args_of(args).n); }};

inline const Variant* variant(std::string_view name) {
  for (const Variant& v : variants())
    if (v.name == name) return &v;
  return nullptr;
}

inline PlanItem item(std::vector<std::string_view> names, long long n = 1000) {
  PlanItem it{&kOp, make_case(n), "n", {}};
  for (auto name : names) it.variants.push_back(variant(name));
  return it;
}

}  // namespace millrace::lab::toy
