// A problem of a fused kernel, as data: the buffers of the plain calls that it equals, how they are
// bound into their args, and which of them the fused call writes too. What those get must be the
// bits of the plain calls (lab/fused_check.h). Beside case.h, whose ports it uses.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/case.h"
#include "tensor/format.h"

namespace millrace {

struct FusedCase {
  std::string name;
  std::vector<Port> ports = {};
  std::vector<int> weights = {};  // of every call the port whose rows its layout packs; -1: none
  std::vector<int> kept = {};     // ports that are compared; other outputs the fused call leaves
  // Into the args of the plain calls, in their order.
  std::function<void(std::span<void* const> ports, std::span<ArgsBox> plain)> bind = {};

  int add(Port port) {
    ports.push_back(std::move(port));
    return static_cast<int>(ports.size()) - 1;
  }
  int input(std::string port, DType type, int64_t elems, float stddev = 1.0f) {
    return add({.name = std::move(port),
                .type = type,
                .elems = elems,
                .fill = fill_normal(type, elems, stddev)});
  }
  int weight(std::string port, DType type, int64_t elems) {
    return add(
        {.name = std::move(port),
         .type = type,
         .elems = elems,
         .role = Role::weight,
         .fill = is_block_format(type) ? fill_blocks(type, elems) : fill_normal(type, elems)});
  }
  // What the plain calls hand on; only kept ones the fused call makes too.
  int made(std::string port, DType type, int64_t elems, bool is_kept = false) {
    const int i = add({.name = std::move(port), .type = type, .elems = elems, .role = Role::out});
    if (is_kept) kept.push_back(i);
    return i;
  }
  int changed(std::string port, DType type, int64_t elems) {
    const int i = input(std::move(port), type, elems);
    ports.back().role = Role::inout;
    kept.push_back(i);
    return i;
  }
};

// The weights' formats that fused kernels read, each of which a case is made for.
inline constexpr DType kFusedTypes[] = {DType::bf16, DType::q8_0, DType::q4_0, DType::q4_k,
                                        DType::q6_k};
// k that such weights can have, no less than this.
inline long long whole_k(DType type, long long k) {
  const int u = format_of(type).block_elems;
  return (k + u - 1) / u * u;
}

}  // namespace millrace
