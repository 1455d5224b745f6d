// The CPUs and caches of this host, from sysfs with CPUID as the fallback.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "machine/host_files.h"

namespace millrace {

struct CpuTopology {
  std::vector<int> cpus;  // of `allowed`: the first of every core, then the second of every core
  int n_cores = 1;
};

std::vector<int> cpus_allowed_by_affinity();
CpuTopology order_cpus(const HostFiles& host, const std::vector<int>& allowed);

struct CacheSizes {
  size_t l1d_bytes = 0;  // one instance
  size_t l2_bytes = 0;   // one instance
  size_t llc_bytes = 0;  // every instance that one of the CPUs can fill
};

CacheSizes find_caches(const HostFiles& host, const std::vector<int>& cpus);

std::string find_cpu_name(const HostFiles& host);

}  // namespace millrace
