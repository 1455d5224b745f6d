// What this host is: CPUs, instruction sets, caches, NUMA nodes, memory, GPUs. Found once at start
// and passed around by const reference; nothing here is measured (machine/ceilings.h measures).
// GPUs are found through the driver's library, opened at run time: every build sees them.
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
  int n_cpus = 1;               // how many lanes pay: logical CPUs allowed by affinity and quota
  int n_cores = 1;              // physical cores among the CPUs allowed by affinity
  std::vector<int> cpus;        // where to pin lane i, one per core first; empty under a CPU quota,
                                // whose shares the scheduler must stay free to move
  double cpu_quota = 0;         // CPUs' worth of time the control group grants; 0: no limit
  std::vector<Isa> isas;        // CPU instruction sets, and the CUDA ones of gpus[0]
  bool has_amx = false;         // int8 tiles: no kernel uses them, no ceiling counts them
  size_t l1d_bytes = 32 << 10;  // per core
  size_t l2_bytes = 1 << 20;    // per core
  size_t llc_bytes = 32 << 20;  // last level, all instances the allowed CPUs share
  int n_numa_nodes = 1;
  size_t memory_bytes = 0;            // installed, or the control group's limit where lower
  size_t memory_available_bytes = 0;  // without swapping, inside that limit
  std::string huge_pages;             // transparent huge pages: always, madvise or never
  std::vector<Gpu> gpus;
  int cuda_driver = 0;      // what the driver speaks: 13000 for CUDA 13.0; 0 when there is none
  std::string gpu_problem;  // why there is no GPU and what to do, when there is none

  bool has(Isa isa) const;
};

// Reads what the operating system says below `root` ("/" but in tests).
Machine find_machine(const std::string& root = "/");

// One stable line that names this machine in records: CPU, instruction sets, caches, CPUs, GPUs.
std::string fingerprint(const Machine& machine);

// Whether this build carries device code.
bool built_with_cuda();

}  // namespace millrace
