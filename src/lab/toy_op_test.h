// An op for tests of the lab itself: y = 2 x, with variants that are right, wrong in several ways,
// and cheating. Not in the table of ops.
#pragma once

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

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

// The cheats. Each gives right results to whoever looks once, and saves the work later.

// Lane 0 does all, so that what it remembers needs no lock.
template <class Compute>
Status alone(const void* args, Exec& exec, Compute compute) {
  if (exec.lane == 0) compute(args_of(args));
  return {};
}
inline void compute(const Args& a) {
  for (long long i = 0; i < a.n; ++i) a.y[i] = 2 * a.x[i];
}

// Keeps results by the address of the inputs.
inline std::map<const float*, std::vector<float>> kept_by_pointer;
inline Status by_pointer(const void* args, Exec& exec) {
  return alone(args, exec, [](const Args& a) {
    auto& kept = kept_by_pointer[a.x];
    if (kept.size() == static_cast<size_t>(a.n)) {
      std::copy(kept.begin(), kept.end(), a.y);
      return;
    }
    compute(a);
    kept.assign(a.y, a.y + a.n);
  });
}

// Keeps the last result in its workspace, with the address that it is for.
inline size_t by_workspace_bytes(const void* args, int) {
  return 16 + 4 * static_cast<size_t>(args_of(args).n);
}
inline Status by_workspace(const void* args, Exec& exec) {
  return alone(args, exec, [&](const Args& a) {
    const uint64_t tag[2] = {0x6d696c6c72616365, reinterpret_cast<uintptr_t>(a.x)};
    const size_t bytes = 4 * static_cast<size_t>(a.n);
    if (std::memcmp(exec.workspace, tag, sizeof tag) == 0) {
      std::memcpy(a.y, exec.workspace + sizeof tag, bytes);
      return;
    }
    compute(a);
    std::memcpy(exec.workspace, tag, sizeof tag);
    std::memcpy(exec.workspace + sizeof tag, a.y, bytes);
  });
}

// Takes an output that is not NaN for one that is done.
inline Status skips_written(const void* args, Exec& exec) {
  return alone(args, exec, [](const Args& a) {
    if (a.n == 0 || std::isnan(a.y[0])) compute(a);
  });
}

// Of a large case, and of nothing that is tested for its values.
inline bool takes_large(const void* args) {
  return args_of(args).n >= 1000;
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
      Variant{.name = "by_pointer", .numerics = "toy.by_pointer", .run = by_pointer},
      Variant{.name = "by_workspace",
              .numerics = "toy.by_workspace",
              .workspace_bytes = by_workspace_bytes,
              .run = by_workspace},
      Variant{.name = "skips_written", .numerics = "toy.skips_written", .run = skips_written},
      Variant{.name = "evasive", .numerics = "toy.twice", .takes = takes_large, .run = twice},
      Variant{.name = "again", .numerics = "toy.twice", .run = twice},
      Variant{.name = "reference", .numerics = kReference, .run = twice},
  };
  return kVariants;
}

inline std::span<const Variant> witnesses() {
  static constexpr std::array kWitnesses = {
      Variant{.name = "plain", .numerics = "toy.twice", .run = twice}};
  return kWitnesses;
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
    .witnesses = witnesses,
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
