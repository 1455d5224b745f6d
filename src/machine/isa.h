// Instruction sets a kernel variant can need. `generic` is the compile baseline and always there.
#pragma once

#include <string_view>

namespace millrace {

enum class Isa {
  generic,
  avx2,         // AVX2, FMA, F16C, BMI2
  avx512,       // F, BW, VL, DQ
  avx512_vnni,  // avx512 with VNNI and VBMI
  avx512_bf16,  // avx512 with BF16
  sm80,         // any CUDA device of compute capability 8.0 or later
  sm90,         // Hopper (sm_90a code)
};

std::string_view name_of(Isa isa);
inline bool is_cuda(Isa isa) {
  return isa == Isa::sm80 || isa == Isa::sm90;
}

// Whether this CPU and its operating system run `isa`; false for the CUDA ones.
bool cpu_has(Isa isa);
bool cpu_has_amx();

}  // namespace millrace
