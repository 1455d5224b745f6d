// What this host is: CPUs, instruction sets, caches, NUMA nodes, memory, GPUs. Found once at start
// and passed around by const reference; nothing here is measured (machine/ceilings.h measures).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "machine/isa.h"

namespace millrace {

struct Gpu {
  int index = 0;
  std::string name;
  int sm = 0;  // compute capability, 90 for 9.0
  int n_sms = 0;
  size_t memory_bytes = 0;
  size_t l2_bytes = 0;
};

struct Machine {
  std::string cpu_name;
  int n_cpus = 1;               // logical CPUs this process may use
  std::vector<int> cpus;        // their numbers, in pinning order: one per core first
  std::vector<Isa> isas;        // CPU instruction sets present
  size_t l1d_bytes = 32 << 10;  // per core
  size_t l2_bytes = 1 << 20;    // per core
  size_t llc_bytes = 32 << 20;  // last level, whole
  int n_numa_nodes = 1;
  size_t memory_bytes = 0;
  size_t memory_available_bytes = 0;
  std::vector<Gpu> gpus;
  std::string gpu_problem;  // why there is no GPU, when there is none

  bool has(Isa isa) const;
};

Machine find_machine();

}  // namespace millrace
