// Small things that instances and rings both do to buffers: telling ports apart by role, hashing
// contents, moving them past the caches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/case.h"

namespace millrace::lab {

inline bool is_output(Role role) {
  return role == Role::out || role == Role::inout;
}
inline bool is_input(Role role) {
  return role == Role::in || role == Role::weight;
}

uint64_t hash_of(const std::byte* data, size_t bytes);

// Past the caches: what is written is in memory and in no cache when it returns. dst is 64-byte
// aligned and bytes a multiple of 64. `src` is read through them.
void stream_copy(std::byte* dst, const std::byte* src, size_t bytes);

}  // namespace millrace::lab
