// The inner loops that ceilings.cpp times, in assembler so that what runs is what is written: no
// spilled accumulator, no load the compiler dropped. They need no target region; the caller checks
// the ISA. Only registers that the baseline compiler can name as clobbered are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "machine/isa.h"

namespace millrace {

// What a multiply-add works on: int8 (int32 sums), f32, bf16 (f32 sums).
enum class MacType { i8, f32, bf16 };
std::string_view name_of(MacType type);

// Multiply-adds on registers, as the best kernel of that type and ISA must issue them.
struct MacLoop {
  std::string_view name;
  MacType type;
  Isa isa;
  int macs_per_turn;
  void (*run)(int64_t n_turns);
};
std::span<const MacLoop> mac_loops();

// Loads of every byte; `bytes` is a multiple of kReadUnit, `data` 64-byte aligned.
inline constexpr size_t kReadUnit = 1024;
struct ReadLoop {
  std::string_view name;
  Isa isa;
  void (*run)(const std::byte* data, size_t bytes);
};
std::span<const ReadLoop> read_loops();

}  // namespace millrace
