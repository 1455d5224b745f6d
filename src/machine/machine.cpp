#include "machine/machine.h"

#include <algorithm>

namespace millrace {

bool Machine::has(Isa isa) const {
  return std::find(isas.begin(), isas.end(), isa) != isas.end();
}

Machine find_machine() {
  Machine m;
  for (Isa isa : {Isa::generic, Isa::avx2, Isa::avx512, Isa::avx512_vnni, Isa::avx512_bf16})
    if (cpu_has(isa)) m.isas.push_back(isa);
  return m;
}

}  // namespace millrace
