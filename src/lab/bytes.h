// Small things that instances and rings both do to buffers: telling ports apart by role, poisoning
// outputs, hashing contents.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/case.h"

namespace millrace::lab {

inline constexpr std::byte kPoison{0xff};  // reads as NaN in every float type, -1 in integers

inline bool is_output(Role role) {
  return role == Role::out || role == Role::inout;
}
inline bool is_input(Role role) {
  return role == Role::in || role == Role::weight;
}

uint64_t hash_of(const std::byte* data, size_t bytes);

// Past the caches: what is written is in memory and in no cache when they return. dst is 64-byte
// aligned and bytes a multiple of 64.
void stream_fill(std::byte* dst, size_t bytes, std::byte value);
void stream_copy(std::byte* dst, const std::byte* src, size_t bytes);

}  // namespace millrace::lab
