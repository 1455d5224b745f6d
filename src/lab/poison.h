// What outputs and workspaces hold before a call. Never one value: a kernel that could tell poison
// from a result could skip the calls that nobody looks at. Every pattern has a salt of its own;
// half of them are NaN in every float type, with random payloads, and half look like results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/case.h"

namespace millrace::lab {

// Outside of what a call may write: guards, and what lies between the rows of a port.
inline constexpr std::byte kPoison{0xff};  // reads as NaN in every float type, -1 in integers

// Which pattern: of a pass over a ring, of an entry in it, of a port of the entry.
uint64_t poison_salt(uint64_t seed, uint64_t pass, uint64_t entry = 0, uint64_t port = 0);

// Past the caches when `cold`; `dst` is then 64-byte aligned and a multiple of 64 bytes long.
void poison(const Port& port, std::span<std::byte> dst, uint64_t salt, bool cold = false);
void poison_workspace(std::span<std::byte> workspace, uint64_t salt);

}  // namespace millrace::lab
