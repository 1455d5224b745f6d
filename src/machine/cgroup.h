// What the control groups above this process grant it, version 1 or 2: the tightest limit from the
// process's own group up to the root of what is visible.
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/host_files.h"

namespace millrace {

struct CgroupLimits {
  double cpus = 0;                 // CPUs' worth of time; 0: no limit
  size_t memory_bytes = SIZE_MAX;  // SIZE_MAX: no limit
  size_t memory_free = SIZE_MAX;   // what is left of the tightest one
  size_t n_throttled = 0;          // periods in which a group above this process ran out of time
};

CgroupLimits find_cgroup_limits(const HostFiles& host);

}  // namespace millrace
