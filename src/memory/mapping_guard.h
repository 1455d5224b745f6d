// The process's guarded mappings, and its handler of SIGBUS: see mapped_file.h, which alone uses
// this. A signal handler can reach nothing but a global, so the table is one: lock-free, of a fixed
// size, read by the handler on the thread that faulted.
#pragma once

#include <cstddef>

namespace millrace::mapping_guard {

// Installs the handler at the first call. -1 when the table is full.
int add(const std::byte* begin, size_t bytes);
// To be called before the mapping goes.
void remove(int guard);
bool is_damaged(int guard);

}  // namespace millrace::mapping_guard
