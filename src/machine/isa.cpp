#include "machine/isa.h"

namespace millrace {

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::generic:
      return "generic";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_vnni:
      return "avx512_vnni";
    case Isa::avx512_bf16:
      return "avx512_bf16";
    case Isa::sm80:
      return "sm80";
    case Isa::sm90:
      return "sm90";
  }
  return "unknown";
}

bool cpu_has(Isa isa) {
  // The builtins consult XGETBV too, so a feature the kernel does not save counts as absent.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
  switch (isa) {
    case Isa::generic:
      return true;
    case Isa::avx2:
      return avx2;
    case Isa::avx512:
      return avx512;
    case Isa::avx512_vnni:
      return avx512 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
    case Isa::avx512_bf16:
      return avx512 && __builtin_cpu_supports("avx512bf16");
    case Isa::sm80:
    case Isa::sm90:
      return false;
  }
  return false;
}

bool cpu_has_amx() {
  return __builtin_cpu_supports("amx-int8");
}

}  // namespace millrace
